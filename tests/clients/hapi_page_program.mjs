// Drives HAPI's page in Chromium: signs in, runs a turn, and approves a command.
// Usage: node hapi_page_program.mjs PLAYWRIGHT CHROMIUM ADDRESS TOKEN SESSION

const [playwright, executablePath, address, token, session] = process.argv.slice(2);
const { chromium } = await import(playwright);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
page.setDefaultTimeout(60_000);

await page.goto(address);
await page.locator("input[type=password]").fill(token);
await page.getByRole("button", { name: "Sign In" }).click();
await page.getByRole("button", { name: "Sign In" }).waitFor({ state: "detached" });
await page.goto(`${address}/sessions/${session}`);

const input = page.locator("[contenteditable]").last();
// A dialog covers the page when it is opened for the first time.
const greeting = page.getByRole("button", { name: "Got it" });
await input.or(greeting).first().waitFor();
if (await greeting.isVisible()) await greeting.click();

await say("what makes cloth?");
await page.getByText("from threads", { exact: true }).waitFor();
await say("may I weave?");
await page.getByRole("button", { name: /^Yes/ }).first().click();
await page.getByText("It is woven.", { exact: true }).waitFor();
await browser.close();

async function say(text) {
  await input.click();
  await page.keyboard.insertText(text);
  await page.keyboard.press("Enter");
}
