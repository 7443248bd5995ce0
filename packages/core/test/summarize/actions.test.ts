import { describe, expect, test } from "vitest";
import { describeCall, describeResult } from "../../src/summarize/actions.ts";

describe("describeCall", () => {
  test.each([
    ["Bash", '{"command":"git push origin main"}', "ran", "git push origin main"],
    ["exec", "exec\ncommand: npm test\ntimeout: 60", "ran", "npm test"],
    ["shell", '{"command":["bash","-lc","make build"]}', "ran", "make build"],
    ["Bash", '{"command":"cd /srv/app && make"}', "ran", "make"],
    ["Read", "Read\nfile_path: src/a.ts\noffset: 3", "read", "src/a.ts"],
    ["write", '{"path":"b.md","content":"hi"}', "wrote", "b.md"],
    ["Edit", "Edit\nfile_path: src/a.ts\nold_string: one\nnew_string: two", "edited", "src/a.ts"],
    ["str_replace_editor", '{"command":"view","path":"c.py"}', "read", "c.py"],
    ["Grep", '{"pattern":"fooBar","path":"src"}', "searched", "fooBar"],
    ["web_fetch", '{"url":"https://example.org/x"}', "opened", "https://example.org/x"],
    ["message_send", '{"to":"Ana","text":"hello"}', "called", "message_send"],
  ])("%s %s is reported as %s %s", (name, text, verb, target) => {
    const action = describeCall(name, text);
    expect([action.verb, action.target]).toEqual([verb, target]);
  });

  test("spells out a small replacement and keeps a large one for its names", () => {
    expect(describeCall("Edit", '{"path":"a","old_string":"x=1","new_string":"x=2"}').detail).toBe(
      ": `x=1` → `x=2`",
    );
    const long = `line one\n${"y".repeat(200)}`;
    expect(
      describeCall("Edit", JSON.stringify({ path: "a", old_string: "x", new_string: long })).detail,
    ).toBe("");
  });

  test("content that looks like arguments stays content", () => {
    const action = describeCall(
      "Write",
      "Write\nfile_path: deploy.yaml\ncontent: kind: Job\nname: nightly\nimage: app:3",
    );
    expect(action.target).toBe("deploy.yaml");
    expect(action.body).toContain("image: app:3");
  });

  test("several edits of one call are all looked at", () => {
    const action = describeCall(
      "MultiEdit",
      "MultiEdit\nfile_path: a.ts\nedits\nold_string: a\nnew_string: alphaOne\nold_string: b\nnew_string: betaTwo",
    );
    expect(action.body).toContain("alphaOne");
    expect(action.body).toContain("betaTwo");
  });

  test("reads a task list from JSON and from lines", () => {
    const json = describeCall(
      "TodoWrite",
      '{"todos":[{"content":"A","status":"completed"},{"content":"B","status":"pending"}]}',
    );
    const lines = describeCall(
      "TodoWrite",
      "TodoWrite\ntodos\ncontent: A\nstatus: completed\ncontent: B\nstatus: pending",
    );
    expect(json.tasks).toEqual([
      { text: "A", done: true },
      { text: "B", done: false },
    ]);
    expect(lines.tasks).toEqual(json.tasks);
  });

  test("a call without readable arguments is still reported", () => {
    expect(describeCall("ping", "ping")).toMatchObject({ verb: "called", target: "ping", detail: "" });
  });
});

describe("describeResult", () => {
  test("finds the failure and the count in a log", () => {
    const outcome = describeResult(
      "ok a\nok b\nError: boom in c\nTests: 2 failed, 3 passed",
      false,
      "command",
    );
    expect(outcome).toEqual({ text: "Error: boom in c; Tests: 2 failed, 3 passed", failed: true });
  });

  test("does not mistake source code about errors for an error", () => {
    const code = Array.from(
      { length: 20 },
      (_, i) => `${i}→  if (err) { throw new Error("failed: x"); }`,
    ).join("\n");
    expect(describeResult(code, false, "command")?.failed ?? false).toBe(false);
  });

  test("tells how something failed rather than with which status", () => {
    const conflict = "CONFLICT (content): Merge conflict in sluice.go";
    expect(describeResult(`Exit code 1\n${conflict}`, true, "command")?.text).toBe(conflict);
    expect(describeResult(`${conflict}\nCommand exited with code 1`, true, "command")?.text).toBe(conflict);
    expect(describeResult("Exit code 1", true, "command")).toEqual({ text: "Exit code 1", failed: true });
  });

  test("says nothing about a file that was read", () => {
    expect(describeResult("a\nb\nc\nd", false, "file")).toBeNull();
  });

  test("takes an error result at its word, without terminal colours", () => {
    expect(describeResult("\u001b[31mfatal: not a git repository\u001b[0m", true, "file")).toEqual({
      text: "fatal: not a git repository",
      failed: true,
    });
  });

  test("repeats a short answer and leaves out a long one", () => {
    expect(describeResult("main", false, "command")?.text).toBe("main");
    expect(describeResult("a\nb\nc\nd\ne", false, "command")).toBeNull();
  });
});
