import { PageHead } from "@/ui/page";

export function WorkflowPage() {
  return <PageHead title="WorkflowPage" />;
}
