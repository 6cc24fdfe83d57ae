import { PageHead } from "@/ui/page";

export function HomePage() {
  return <PageHead title="Home" />;
}
