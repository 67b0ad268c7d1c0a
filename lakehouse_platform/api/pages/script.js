// Shows openapi.json. Texts are put in as text, never as HTML.
"use strict";

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function under(parent, ...children) {
  for (const child of children) parent.append(child);
  return parent;
}

function table(head, rows) {
  const made = element("table");
  made.append(under(element("tr"), ...head.map((text) => element("th", text))));
  for (const row of rows) made.append(under(element("tr"), ...row.map((text) => element("td", text))));
  return made;
}

function resolved(api, schema) {
  if (!schema || !schema.$ref) return schema || {};
  return schema.$ref.slice(2).split("/").reduce((at, part) => at[part], api);
}

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.type === "array") return "list of " + typeOf(schema.items);
  if (schema.enum) return schema.enum.join(", ");
  return schema.format ? schema.type + " (" + schema.format + ")" : schema.type || "any";
}

function fields(api, schema) {
  const whole = resolved(api, schema);
  const needed = whole.required || [];
  return Object.entries(whole.properties || {}).map(([name, field]) => [
    name, typeOf(field), needed.includes(name) ? "required" : "", field.description || "",
  ]);
}

function described(api, title, schema) {
  const box = element("div");
  box.append(element("h4", title + (schema && schema.$ref ? ": " + typeOf(schema) : "")));
  const rows = fields(api, schema);
  if (rows.length) box.append(table(["Field", "Type", "", "Meaning"], rows));
  return box;
}

function operation(api, path, method, what) {
  const box = element("details");
  box.append(under(element("summary"), element("span", method.toUpperCase(), "method"), element("code", path),
    element("span", " " + (what.summary || ""), "about")));
  if (what.description) box.append(element("p", what.description));
  box.append(element("p", what.security ? "Needs a token or an API key." : "Needs no sign-in.", "about"));
  const parameters = (what.parameters || []).map((given) => resolved(api, given));
  if (parameters.length) {
    box.append(table(["Parameter", "In", "Type", "", "Meaning"], parameters.map((one) => [
      one.name, one.in, typeOf(one.schema), one.required ? "required" : "", one.description || "",
    ])));
  }
  for (const [type, content] of Object.entries((what.requestBody || {}).content || {})) {
    box.append(described(api, "Body, " + type, content.schema));
  }
  const answers = [];
  for (const [status, given] of Object.entries(what.responses || {})) {
    const answer = resolved(api, given);
    answers.push([status, answer.description || "", Object.keys(answer.content || {}).join(", ")]);
  }
  box.append(element("h4", "Answers"), table(["Status", "Meaning", "Type"], answers));
  for (const [status, answer] of Object.entries(what.responses || {})) {
    const json = (answer.content || {})["application/json"];
    if (status.startsWith("2") && json) box.append(described(api, "Answer " + status, json.schema));
  }
  return box;
}

async function show() {
  const page = document.getElementById("page");
  const answer = await fetch("openapi.json");
  const api = await answer.json();
  if (api.info.description) page.append(element("p", api.info.description));
  const sections = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, what] of Object.entries(methods)) {
      const name = (what.tags || ["other"])[0];
      if (!sections.has(name)) sections.set(name, under(element("section"), element("h2", name)));
      sections.get(name).append(operation(api, path, method, what));
    }
  }
  for (const section of sections.values()) page.append(section);
}

show().catch((error) => document.getElementById("page").append(element("p", "openapi.json cannot be read: " + error)));
