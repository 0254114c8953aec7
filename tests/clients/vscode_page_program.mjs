// Drives VS Code's chat page in Chromium through steps, which are arrays of a verb and its arguments:
//
//   agent NAME      selects the agent of a new session
//   preset NAME     selects the preset of permissions
//   say TEXT        sends a message as soon as no turn runs
//   see TEXT        waits until the chat shows the text
//   press NAME      presses the last button of the chat whose name begins so
//   find NAME       waits until the chat has such a button
//   gone NAME       waits until the chat has no such button
//   held ADDRESS    waits until the model at the address holds a response
//   open TITLE      opens a session from the list of sessions
//   picture PATH    takes a screenshot
//
// Usage: node vscode_page_program.mjs PLAYWRIGHT CHROMIUM ADDRESS FOLDER STEPS

const [playwright, executablePath, address, folder, steps] = process.argv.slice(2);
const { chromium } = await import(playwright);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(30_000);

const chat = page.locator(".part.auxiliarybar");
const rows = page.locator(".action-widget .monaco-list-row");
const button = (name) => chat.getByRole("button", { name: new RegExp(`^${name}`) }).last();

const VERBS = {
  // The agent host offers the agent some time after the page was opened, so the list is opened until then.
  async agent(name) {
    const picker = chat.locator(".chat-session-target-picker-item").last();
    for (;;) {
      await picker.click();
      await rows.first().waitFor();
      const row = rows.filter({ hasText: name }).first();
      if (await row.isVisible()) return row.click();
      await page.keyboard.press("Escape");
      await rows.first().waitFor({ state: "detached" });
    }
  },

  // The list closes when the page loads further parts, so it is opened until a row was clicked.
  async preset(name) {
    const row = rows.filter({ hasText: name }).first();
    const click = () => row.click({ timeout: 3_000 }).then(() => true, () => false);
    do {
      await button("Approvals: ").click();
    } while (!(await click()));
    await button(`Approvals: ${name}`).waitFor();
  },

  async say(text) {
    await VERBS.gone("Cancel");
    await chat.locator(".interactive-input-editor").last().click();
    await page.keyboard.insertText(text);
    await page.keyboard.press("Enter");
  },

  see: (text) => chat.getByText(text, { exact: true }).last().waitFor(),

  press: (name) => button(name).click(),

  find: (name) => button(name).waitFor(),

  gone: (name) => button(name).waitFor({ state: "detached" }),

  async held(model) {
    for (;;) {
      const { held } = await (await fetch(`${model}/requests`)).json();
      if (held === 1) return;
    }
  },

  async open(title) {
    await command("Chat Agent Sessions: Show Agent Sessions Sidebar");
    await chat.locator(".agent-session-item-row").filter({ hasText: title }).first().click();
  },

  picture: (path) => page.screenshot({ path }),
};

await page.goto(`${address}/?folder=${encodeURIComponent(folder)}`);
await page.locator(".monaco-workbench").waitFor();
for (const [verb, ...words] of JSON.parse(steps)) {
  try {
    await VERBS[verb](...words);
  } catch (problem) {
    console.log(await chat.innerText());
    throw new Error(`${verb} ${words.join(" ")}: ${problem.message}`);
  }
}
await browser.close();

async function command(name) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget").waitFor();
  await page.keyboard.insertText(name);
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: name }).first().click();
}
