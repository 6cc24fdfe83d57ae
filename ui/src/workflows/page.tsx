import { PageHead } from "@/ui/page";

export function WorkflowsPage() {
  return <PageHead title="WorkflowsPage" />;
}
