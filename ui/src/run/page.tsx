import { PageHead } from "@/ui/page";

export function RunPage() {
  return <PageHead title="RunPage" />;
}
