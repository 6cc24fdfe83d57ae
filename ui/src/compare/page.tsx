import { PageHead } from "@/ui/page";

export function ComparePage() {
  return <PageHead title="ComparePage" />;
}
