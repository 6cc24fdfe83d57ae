import { PageHead } from "@/ui/page";

export function WorkersPage() {
  return <PageHead title="WorkersPage" />;
}
