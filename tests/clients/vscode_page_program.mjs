// Drives VS Code's chat page in Chromium: selects the agent and its preset of permissions, runs a turn and one
// with a command, and takes a screenshot.
// Usage: node vscode_page_program.mjs PLAYWRIGHT CHROMIUM ADDRESS FOLDER SCREENSHOT

const [playwright, executablePath, address, folder, screenshot] = process.argv.slice(2);
const { chromium } = await import(playwright);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(60_000);

await page.goto(`${address}/?folder=${encodeURIComponent(folder)}`);
await page.locator(".monaco-workbench").waitFor();
const chat = page.locator(".part.auxiliarybar");
const rows = page.locator(".action-widget .monaco-list-row");
await selectAgent("Codex");
await selectPreset("Full Access");

await say("what makes cloth?");
await chat.getByText("from threads", { exact: true }).first().waitFor();
await say("may I weave?");
await chat.getByText("It is woven.", { exact: true }).first().waitFor();
await page.screenshot({ path: screenshot });
await browser.close();

// The agent host offers the agent some time after the page was opened, so the list is opened until then.
async function selectAgent(name) {
  const picker = chat.locator(".chat-session-target-picker-item").last();
  for (;;) {
    await picker.click();
    await rows.first().waitFor();
    const row = rows.filter({ hasText: name }).first();
    if (await row.isVisible()) return row.click();
    await page.keyboard.press("Escape");
    await rows.first().waitFor({ state: "detached" });
  }
}

async function selectPreset(name) {
  await chat.locator("[class*=codicon-shield]").last().click();
  await rows.filter({ hasText: name }).first().click();
  await rows.first().waitFor({ state: "detached" });
}

async function say(text) {
  await chat.locator(".interactive-input-editor").last().click();
  await page.keyboard.insertText(text);
  await page.keyboard.press("Enter");
}
