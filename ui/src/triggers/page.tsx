import { PageHead } from "@/ui/page";

export function TriggersPage() {
  return <PageHead title="TriggersPage" />;
}
