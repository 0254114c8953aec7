// Drives codex-telegram's page in Chromium: signs in, opens a thread, sends prompts, and approves commands.
// Usage: node codex_telegram_page_program.mjs PLAYWRIGHT CHROMIUM ADDRESS PASSWORD THREAD [PROMPT ANSWER]…
// THREAD is the title of a thread in the list, or empty for a new one.

const [playwright, executablePath, address, password, thread, ...turns] = process.argv.slice(2);
const { chromium } = await import(playwright);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
page.setDefaultTimeout(60_000);

await page.goto(address);
await page.getByPlaceholder("Username").fill("weaver");
await page.getByPlaceholder("Password").fill(password);
await page.getByRole("button", { name: "Sign in" }).click();
const input = page.getByPlaceholder("Message...");
await input.waitFor();

if (thread) {
  const title = page.getByText(thread, { exact: true });
  await title.first().click();
  // Two lists, the heading, and the first prompt of the conversation.
  await title.nth(3).waitFor();
}
while (turns.length > 0) {
  const [prompt, answer] = turns.splice(0, 2);
  await input.fill(prompt);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  const shown = page.getByText(answer, { exact: true });
  const approve = page.getByRole("button", { name: "Approve", exact: true });
  await shown.or(approve).first().waitFor();
  if (await approve.isVisible()) await approve.click();
  await shown.waitFor();
  // The button is "Stop" while the turn runs.
  await page.getByRole("button", { name: "Send", exact: true }).waitFor();
}
await browser.close();
