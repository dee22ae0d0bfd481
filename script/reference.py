"""Writes the generated pages of docs/reference: reference.py HEDDLE [--check].

commands.md is what the command declares (`heddle completion json`), json.md and schemas/ are
json-keys.txt, operators-*.md are the tables of the importers. --check: writes nothing, prints what
differs and exits with 1.
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys

import reference_operators

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- Made by script/reference.py: change {}, and run it. -->\n"
PLAIN = {"integer", "number", "string", "boolean", "any", "null"}


def cell(text):
    """As text in a table of Markdown."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def code(text):
    return "`" + text.replace("|", "\\|") + "`" if text else ""


def described(heddle):
    return json.loads(subprocess.run([heddle, "completion", "json"], check=True,
                                     capture_output=True, text=True).stdout)["commands"]


# Options that several commands have under one title, with the same words, stand once.
def option_rows(options):
    for option in options:
        names = ", ".join(option["names"]) + (" " + option["value"] if option["value"] else "")
        more = " May be given many times." if option["repeated"] and option["value"] else ""
        rare = "" if option["rare"] else " •"
        yield f"| {code(names)}{rare} | {cell(option['help'])}{'.' if more else ''}{more} |"


def groups_of(command):
    groups = {}
    for option in command["options"]:
        groups.setdefault(option["group"], []).append(option)
    return groups


def shared_groups(commands):
    """The titles that at least three commands have with the same options."""
    seen = {}
    for command in commands:
        for title, options in groups_of(command).items():
            seen.setdefault((title, json.dumps(options)), []).append(command["name"])
    return {key: names for key, names in seen.items() if len(names) >= 3}


def table(rows):
    return ["| option | |", "|---|---|", *rows, ""]


def commands_page(commands):
    lines = ["# Commands and options", "",
             MADE.format("the declarations in tools/"),
             "What `heddle COMMAND --help-all` prints. `--help` shows the options with a dot (•). [CLI.md](../CLI.md) is the contract that scripts can rely on, [json.md](json.md) has what `--json` writes.", "",
             "Values: `F` is a file, `DIR` a folder, `N` a whole number, `X` a number, `BYTES` a number of bytes with or without a unit (`1048576`, `512MiB`, `4GiB`, `4GB`). Words may be written in small or capital letters; types "
             "of numbers also as others call them: `fp16`, `float16` and `half` are `f16`, `fp32` and `float32` are `f32`, `bfloat16` is `bf16`, `i8` and `s8` are `int8`. `--option VALUE` and `--option=VALUE` are the same.", ""]
    shared = shared_groups(commands)
    lines += ["## All commands", "", "| command | |", "|---|---|"]
    lines += [f"| [`heddle {c['name']}`](#heddle-{c['name']}) | {cell(c['summary'])} |" for c in commands]
    lines += [""]
    anchors = {}
    for (title, options), names in shared.items():
        users = ", ".join(f"`{name}`" for name in names)
        count = sum(1 for other in shared if other[0] == title)
        heading = f"Options: {title.lower()}" if count == 1 else f"Options: {title.lower()} of {names[0]}"
        anchors[title, options] = re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")
        lines += [f"## {heading}", "", f"Of {users}.", "", *table(option_rows(json.loads(options)))]
    for command in commands:
        arguments = " ".join(a["name"] if a["required"] else f"[{a['name']}]" for a in command["arguments"])
        lines += [f"## heddle {command['name']}", "", f"{command['summary'][0].upper()}{command['summary'][1:]}.", "",
                  f"Usage: `heddle {command['name']} [OPTIONS] {arguments}`".replace(" `", "`"), ""]
        lines += [f"- `{a['name']}`: {a['help']}" for a in command["arguments"]] + [""] * bool(command["arguments"])
        for title, options in groups_of(command).items():
            key = (title, json.dumps(options))
            if key in shared:
                lines += [f"{title}: [see above](#{anchors[key]}).", ""]
            else:
                lines += [f"{title}:", "", *table(option_rows(options))]
        if command["examples"]:
            lines += ["Examples:", "", "```text", command["examples"].rstrip("\n"), "```", ""]
    return "\n".join(lines)


def read_keys():
    """Section -> list of (key, type, meaning), parts ("use") put in; parts have a colon."""
    sections, uses = {}, {}
    now = None
    for number, line in enumerate((FOLDER / "json-keys.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            now = line.strip("[]")
            if now in sections:
                sys.exit(f"json-keys.txt:{number}: {line} twice")
            sections[now] = []
        elif line.startswith("use "):
            uses.setdefault(now, []).append(":" + line[4:])
        else:
            parts = re.split(r"  +", line, maxsplit=2)
            if len(parts) != 3:
                sys.exit(f"json-keys.txt:{number}: wanted key, type and meaning, two spaces apart")
            sections[now].append(tuple(parts))

    def rows(name):
        return [row for used in uses.get(name, []) for row in rows(used)] + sections[name]
    return {name: rows(name) for name in sections}


def schema_of(kind, parts):
    """JSON Schema of a type of json-keys.txt."""
    kind = kind.strip()
    if " | " in kind:
        return {"anyOf": [schema_of(each, parts) for each in kind.split(" | ")]}
    if kind.endswith(" or null"):
        return {"anyOf": [schema_of(kind[:-8], parts), {"type": "null"}]}
    if kind.startswith("list of "):
        return {"type": "array", "items": schema_of(kind[8:], parts)}
    if kind.startswith("map of "):
        return {"type": "object", "additionalProperties": schema_of(kind[7:], parts)}
    if kind == "any":
        return {}
    if kind == "number":  # what is no number has no other form in JSON
        return {"type": ["number", "null"]}
    if kind in PLAIN:
        return {"type": kind}
    if ":" + kind not in parts:
        sys.exit(f"json-keys.txt: no part [:{kind}]")
    return {"$ref": f"#/$defs/{kind}"}


def object_schema(rows, parts):
    properties = {key: schema_of(kind, parts) | {"description": meaning}
                  for key, kind, meaning in rows if key != "*"}
    rest = [schema_of(kind, parts) for key, kind, _ in rows if key == "*"]
    return {"type": "object", "properties": properties, "additionalProperties": rest[0] if rest else False}


def parts_used(rows, sections, found=None):
    found = {} if found is None else found
    for _, kind, _ in rows:
        for word in re.findall(r"[a-z_0-9]+", kind):
            if ":" + word in sections and word not in found:
                found[word] = sections[":" + word]
                parts_used(found[word], sections, found)
    return found


def schemas(sections):
    for name, rows in sections.items():
        if name.startswith(":"):
            continue
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"heddle {name} --json",
                  **object_schema(rows, sections), "required": ["schema"]}
        defs = {part: object_schema(of, sections) for part, of in sorted(parts_used(rows, sections).items())}
        if defs:
            schema["$defs"] = defs
        yield name, schema


def type_text(kind):
    return re.sub(r"[a-z_0-9]+", lambda m: m[0] if m[0] in PLAIN | {"list", "map", "of", "or"}
                  else f"[{m[0]}](#{anchor(m[0])})", kind.replace("|", "\\|"))


def anchor(part):
    return f"object-{part}"


def json_page(sections):
    lines = ["# JSON", "", MADE.format("docs/reference/json-keys.txt"),
             "What commands write with `--json F` (`-`: standard output, where nothing else is printed then). New keys may be added; none changes its meaning without another `schema`. "
             "Numbers that are infinite or no number are `null`. Keys that belong to an option are there with that option alone. "
             "The folder [schemas](schemas) has a JSON Schema of each command.", ""]
    for name, rows in sections.items():
        if not name.startswith(":"):
            title = f"heddle {name} --json" if name != "completion" else "heddle completion json"
            lines += [f"## {title}", "", *keys_table(rows)]
    lines += ["## Parts", ""]
    for name, rows in sections.items():
        if name.startswith(":") and name not in (":head", ":extent_head"):
            lines += [f"### object {name[1:]}", "", *keys_table(rows)]
    return "\n".join(lines)


def keys_table(rows):
    return ["| key | type | |", "|---|---|---|",
            *[f"| `{key}` | {type_text(kind)} | {cell(meaning)} |" if key != "*" else
              f"| any other | {type_text(kind)} | {cell(meaning)} |" for key, kind, meaning in rows], ""]


def pages(heddle):
    """Path -> text of all that is made."""
    made = {FOLDER / "commands.md": commands_page(described(heddle))}
    sections = read_keys()
    made[FOLDER / "json.md"] = json_page(sections)
    for name, schema in schemas(sections):
        made[FOLDER / "schemas" / f"{name}.json"] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    for name, text in reference_operators.pages(MADE):
        made[FOLDER / name] = text
    return {path: text.rstrip("\n") + "\n" for path, text in made.items()}


def main(heddle, *options):
    same = True
    made = pages(heddle)
    for path, text in made.items():
        old = path.read_text() if path.exists() else ""
        if old == text:
            continue
        same = False
        if "--check" in options:
            sys.stdout.writelines(difflib.unified_diff(
                old.splitlines(True), text.splitlines(True), str(path.relative_to(ROOT)), "what script/reference.py makes"))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    for path in sorted((FOLDER / "schemas").glob("*.json")):
        if path not in made:
            same = False
            print(f"{path.relative_to(ROOT)}: no command has this schema")
            if "--check" not in options:
                path.unlink()
    return 0 if same or "--check" not in options else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
