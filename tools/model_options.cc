#include "model_options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <deque>

#include "command_line.h"
#include "known_names.h"
#include "output_file.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

namespace {

// The names that --fix takes out of `given`.
Result<tensor::NamedLiterals> take_fixed(const std::vector<std::string>& names,
                                         tensor::NamedLiterals& given) {
  tensor::NamedLiterals fixed;
  for (const std::string& name : names) {
    const auto found = std::find_if(given.begin(), given.end(),
                                    [&](const auto& value) { return value.first == name; });
    if (found == given.end())
      return user_error("--fix {}: no value was given; add --input {}=SPEC or put it in --inputs",
                        name, name);
    fixed.push_back(std::move(*found));
    given.erase(found);
  }
  return fixed;
}

}  // namespace

Result<DimChoice> parse_dim(const std::string& text) {
  const size_t below = text.find("<=");
  const std::string_view head = std::string_view(text).substr(0, below);
  const size_t equals = head.rfind('=');
  const auto wrong = [&] {
    return user_error(
        "--dim {}: wanted NAME=N with a number, such as batch=8, or NAME=N<=MOST, such as "
        "length=17<=512 (a range, as length=1..512, is for run and bench)",
        text);
  };
  if (equals == std::string_view::npos || equals == 0) return wrong();
  DimChoice choice{std::string(head.substr(0, equals)), std::nullopt, std::nullopt};
  const std::string_view size = head.substr(equals + 1);
  if (below != std::string::npos) {
    choice.bound = parse_number(std::string_view(text).substr(below + 2));
    if (!choice.bound || *choice.bound < 1) return wrong();
  }
  if (!choice.bound || !size.empty()) {
    choice.size = parse_number(size);
    if (!choice.size) return wrong();
  }
  return choice;
}

Result<std::pair<std::string, std::vector<int64_t>>> parse_shape_choice(const std::string& text) {
  const size_t equals = text.rfind('=');
  std::vector<int64_t> dims;
  bool ok = equals != std::string::npos && equals > 0;
  for (size_t at = equals + 1; ok && at < text.size();) {
    const size_t end = std::min(text.size(), text.find_first_of("x,", at));
    const auto size = parse_number(std::string_view(text).substr(at, end - at));
    ok = size.has_value() && end + 1 != text.size();
    dims.push_back(size.value_or(0));
    at = end + 1;
  }
  if (!ok) return user_error("--shape {}: wanted NAME=1x3x224x224", text);
  return std::pair(text.substr(0, equals), std::move(dims));
}

void OpenChoices::declare(CommandLine& line) {
  line.argument(model, "MODEL",
                "ONNX, HLO, StableHLO or a compiled program, recognised by its content");
  line.group("Model");
  line.list(
      dims, "--dim", "NAME=N[<=MOST]",
      "sets a dynamic dimension (default: what the inputs have, or 1); with <=MOST a few "
      "programs serve every extent up to MOST; run and bench: NAME=1..512[:STEP] runs at each "
      "of these extents");
  line.list(shapes, "--shape", "NAME=1x3x8", "sets all dimensions of an input");
  line.rare();
  line.list(fixed, "--fix", "NAME",
            "makes the value that is given for an input a constant of the model");
  line.text(module, "--module", "NAME", "which module, if a text file holds several");
  line.flag(random_constants, "--random-constants",
            "random values for constants that HLO text leaves out: {...}");
  line.choice(
      kv_cache, "--kv-cache", {"f32", "bf16", "int8"},
      "type of the caches of keys and values that are inputs and outputs of a decoder; int8 "
      "adds a scale for each row as NAME.scale (default: as in the model)");
  files_ = line.files();
  files_->reads([this](const FileUse::Add& add) { add("MODEL", model); });
}

Result<ModelHandle> OpenChoices::open() const {
  tensor::NamedLiterals none;
  return open(none, {});
}

Result<ModelHandle> OpenChoices::open(const InputChoices& inputs) const {
  HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals given, inputs.read());
  return open(given, inputs);
}

Result<ModelHandle> OpenChoices::open(tensor::NamedLiterals& given,
                                      const InputChoices& inputs) const {
  std::vector<DimChoice> sizes;
  for (const std::string& text : dims) {
    HEDDLE_ASSIGN_OR_RETURN(auto dim, parse_dim(text));
    sizes.push_back(std::move(dim));
  }
  std::vector<std::pair<std::string, std::vector<int64_t>>> wanted, seen;
  for (const std::string& text : shapes) {
    HEDDLE_ASSIGN_OR_RETURN(auto shape, parse_shape_choice(text));
    wanted.push_back(std::move(shape));
  }
  HEDDLE_ASSIGN_OR_RETURN(tensor::NamedLiterals constants, take_fixed(fixed, given));
  // Values of a first run, in which a model may find what decides its shapes.
  tensor::NamedLiterals values = given;
  tensor::Vocabulary vocabulary;
  for (tensor::NamedLiterals* all : {&constants, &values})
    for (auto& [name, value] : *all)
      if (inputs.texts().contains(name))
        value = tensor::ids_of_texts(value,
                                     [&](const std::string& text) { return vocabulary.id(text); });
  std::vector<const char*> c_texts;
  for (int64_t i = 1; i < vocabulary.size(); ++i)
    c_texts.push_back(vocabulary.text(static_cast<uint32_t>(i)).c_str());
  for (const auto& [name, value] : given) {
    seen.emplace_back(name, value.shape().extents());
    if (inputs.texts().contains(name)) seen.back().second.pop_back();
  }

  std::vector<heddle_dim> c_dims, c_bounds;
  for (const auto& [name, size, bound] : sizes) {
    if (size) c_dims.push_back({name.c_str(), *size});
    if (bound) c_bounds.push_back({name.c_str(), *bound});
  }
  std::vector<heddle_shape> c_shapes, c_hints;
  for (const auto& [name, extents] : wanted)
    c_shapes.push_back({name.c_str(), extents.data(), static_cast<int64_t>(extents.size())});
  for (const auto& [name, extents] : seen)
    c_hints.push_back({name.c_str(), extents.data(), static_cast<int64_t>(extents.size())});
  std::deque<std::vector<int64_t>> dims_of;
  const auto as_values = [&](const tensor::NamedLiterals& values) {
    std::vector<heddle_value> all;
    for (const auto& [name, value] : values) {
      const std::vector<int64_t>& extents = dims_of.emplace_back(value.shape().extents());
      all.push_back({name.c_str(), static_cast<heddle_type>(value.type()), extents.data(),
                     static_cast<int64_t>(extents.size()), value.data()});
    }
    return all;
  };
  const std::vector<heddle_value> c_constants = as_values(constants), c_values = as_values(values);

  auto options = sized<heddle_open_options>();
  options.dims = c_dims.data();
  options.dim_count = c_dims.size();
  options.shapes = c_shapes.data();
  options.shape_count = c_shapes.size();
  options.hints = c_hints.data();
  options.hint_count = c_hints.size();
  options.constants = c_constants.data();
  options.constant_count = c_constants.size();
  options.values = c_values.data();
  options.value_count = c_values.size();
  options.texts = c_texts.data();
  options.text_count = c_texts.size();
  options.bounds = c_bounds.data();
  options.bound_count = c_bounds.size();
  options.module = module.empty() ? nullptr : module.c_str();
  options.random_constants = random_constants ? 1 : 0;
  options.kv_cache = kv_cache.empty() ? nullptr : kv_cache.c_str();
  heddle_model* made = nullptr;
  if (Status opened = to_status(heddle_model_open(model.c_str(), &options, &made)); !opened)
    return tl::unexpected<Error>(inputs.with_sources(opened.error(), given));
  ModelHandle handle(made);
  const char* path = nullptr;
  for (int64_t i = 0; files_ && (path = heddle_model_file(made, i)) != nullptr; ++i)
    HEDDLE_RETURN_IF_ERROR(files_->check_read("external data", path));
  return handle;
}

Unbound unbound_of(const heddle_model* model) {
  Unbound all;
  for (heddle_dim dim; (dim = heddle_model_unbound(model, static_cast<int64_t>(all.size()))).name;)
    all.emplace_back(dim.name, dim.size);
  return all;
}

namespace {

// "memory_limit_bytes": "--memory-limit".
std::string flag_of(std::string field) {
  constexpr std::string_view kUnit = "_bytes";
  if (field.ends_with(kUnit)) field.resize(field.size() - kUnit.size());
  std::replace(field.begin(), field.end(), '_', '-');
  return "--" + field;
}

// Words divided by "|".
std::vector<std::string> divided(std::string_view words) {
  std::vector<std::string> all;
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.size(), words.find('|', at));
    all.emplace_back(words.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// Those that --help leaves to --help-all.
bool is_rare(std::string_view field) {
  constexpr std::string_view kUsual[] = {"device",    "target",  "level", "numerics",
                                         "precision", "threads", "amp",   "cache"};
  return std::find(std::begin(kUsual), std::end(kUsual), field) == std::end(kUsual);
}

void declare_number(CommandLine& line, std::optional<int64_t>& to, const std::string& flag,
                    const char* value, const char* help) {
  if (std::string_view(value) == "BYTES")
    line.bytes(to, flag.c_str(), help);
  else
    line.number(to, flag.c_str(), value, help);
}

}  // namespace

void CompileChoices::declare(CommandLine& line, std::string_view but) {
  line.group("Compilation");
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) \
  line.rare(is_rare(#field));                                \
  line.choice(field, flag_of(#field).c_str(), divided(words), help);
#define HEDDLE_OPEN(part, field, plain, words, help) \
  line.rare(is_rare(#field));                        \
  line.choice(field, flag_of(#field).c_str(), divided(words), help, /*open=*/true);
#define HEDDLE_TEXT(part, Type, field, plain, value, help) \
  line.rare(is_rare(#field));                              \
  if (but != #field) line.text(field, flag_of(#field).c_str(), value, help);
#define HEDDLE_NUMBER(part, Type, field, C, plain, least, most, value, help) \
  line.rare(is_rare(#field));                                                \
  declare_number(line, field, flag_of(#field), value, help);
#define HEDDLE_FOLDER(part, field, help) \
  line.rare(is_rare(#field));            \
  line.output_folder(field, flag_of(#field).c_str(), help);
#include "compiler/options.def"
  line.rare();
  line.text(
      stop_after, "--stop-after", "POINT",
      "prints the result of import, optimize, fuse, schedule, stitch, plan or a pass, and stops");
  line.files()->reads([this](const FileUse::Add& add) {
    add("--target", target);
    add("--ranges", ranges);
    // "plugin:FILE", "virtual:FILE,option=…"
    if (const size_t colon = device.find(':'); colon != std::string::npos)
      add("--device", device.substr(colon + 1, device.find(',', colon) - colon - 1));
  });
}

namespace {

Status check_number(const std::string& flag, std::optional<int64_t> number, bool any,
                    int64_t most) {
  if (!number || (any && *number == -1) || (*number >= 1 && *number <= most)) return {};
  return user_error("{} {}: wanted a number from 1 {}{}; leave it out for the default", flag,
                    *number, most == INT64_MAX ? "on" : fmt::format("to {}", most),
                    any ? ", or any" : "");
}

// Members of CompileChoices as those of the C struct.
const char* c_member(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
template <typename C>
C c_member(std::optional<int64_t> number) {
  return static_cast<C>(number.value_or(0));
}

void add_words(std::vector<std::string>& words, const std::string& flag, const std::string& value,
               const std::string& plain) {
  if (value != plain) words.insert(words.end(), {flag, value});
}
void add_words(std::vector<std::string>& words, const std::string& flag,
               std::optional<int64_t> value, std::optional<int64_t> /*plain*/) {
  if (value) words.insert(words.end(), {flag, *value == -1 ? "any" : std::to_string(*value)});
}

}  // namespace

std::vector<std::string> OpenChoices::words() const {
  std::vector<std::string> all;
  for (const auto& [flag, values] :
       {std::pair("--dim", &dims), std::pair("--shape", &shapes), std::pair("--fix", &fixed)})
    for (const std::string& value : *values) add_words(all, flag, value, "");
  add_words(all, "--module", module, "");
  if (random_constants) all.emplace_back("--random-constants");
  add_words(all, "--kv-cache", kv_cache, "");
  return all;
}

Result<heddle_compile_options> CompileChoices::options() const {
  HEDDLE_RETURN_IF_ERROR(check_target(target));
  HEDDLE_RETURN_IF_ERROR(check_disabled(disable));
  HEDDLE_RETURN_IF_ERROR(check_stop(stop_after));
  auto options = sized<heddle_compile_options>();
#define HEDDLE_CHOICE(part, Type, field, ...) options.field = c_member(field);
#define HEDDLE_TEXT(part, Type, field, ...) options.field = c_member(field);
#define HEDDLE_FOLDER(part, field, help) options.field = c_member(field);
#define HEDDLE_FLAG(part, field) options.field = field ? 1 : 0;
#define HEDDLE_NUMBER(part, Type, field, C, plain, least, most, value, help)                  \
  HEDDLE_RETURN_IF_ERROR(                                                                     \
      check_number(flag_of(#field), field, std::string_view(value).ends_with("|any"), most)); \
  options.field = c_member<C>(field);
#include "compiler/options.def"
  return options;
}

std::vector<std::string> CompileChoices::words() const {
  const CompileChoices standard;
  std::vector<std::string> all;
#define HEDDLE_CHOICE(part, Type, field, ...) \
  add_words(all, flag_of(#field), field, standard.field);
#define HEDDLE_TEXT(part, Type, field, ...) add_words(all, flag_of(#field), field, standard.field);
#define HEDDLE_NUMBER(part, Type, field, ...) \
  add_words(all, flag_of(#field), field, standard.field);
#include "compiler/options.def"
  return all;
}

namespace {

// Whether a choice is made that changes what is compiled.
bool asks_for_another(const CompileChoices& choices) {
  const CompileChoices standard;
  bool asks = false;
#define HEDDLE_ASKS(field) asks |= choices.field != standard.field;
#define HEDDLE_CHOICE(part, Type, field, ...) HEDDLE_ASKS(field)
#define HEDDLE_TEXT(part, Type, field, ...) HEDDLE_ASKS_##part(field)
#define HEDDLE_NUMBER(part, Type, field, ...) HEDDLE_ASKS_##part(field)
#define HEDDLE_ASKS_said HEDDLE_ASKS
#define HEDDLE_ASKS_told HEDDLE_ASKS
#define HEDDLE_ASKS_keyed HEDDLE_ASKS
#define HEDDLE_ASKS_target HEDDLE_ASKS
#define HEDDLE_ASKS_where(field)
#define HEDDLE_ASKS_none(field)
#include "compiler/options.def"
#undef HEDDLE_ASKS
#undef HEDDLE_ASKS_said
#undef HEDDLE_ASKS_told
#undef HEDDLE_ASKS_keyed
#undef HEDDLE_ASKS_target
#undef HEDDLE_ASKS_where
#undef HEDDLE_ASKS_none
  return asks;
}

// Where the progress of a compilation is shown. Programs keep the function for what they compile in
// later runs; nothing is shown then.
Progress* compile_progress = nullptr;

int32_t show_step(const heddle_compile_progress* at, void* /*context*/) {
  constexpr double kFirstSeconds = 0.5;
  if (compile_progress != nullptr && at->seconds >= kFirstSeconds)
    compile_progress->show(
        fmt::format("{} compiling: {}", Progress::bar(at->done, at->steps), at->step));
  return 0;
}

}  // namespace

Result<ProgramHandle> CompileChoices::compile(heddle_model* model, bool consume) const {
  HEDDLE_ASSIGN_OR_RETURN(heddle_compile_options wanted, options());
  if (asks_for_another(*this) && info_of(model).is_program)
    tell("note: a compiled program stays as it was compiled; only --threads has an effect");
  wanted.consume_model = consume;
  Progress progress;
  wanted.progress = background ? nullptr : show_step;  // nullptr: another thread compiles
  compile_progress = &progress;
  heddle_program* program = nullptr;
  const Status compiled = to_status(heddle_compile(model, &wanted, &program));
  compile_progress = nullptr;
  HEDDLE_RETURN_IF_ERROR(compiled);
  return ProgramHandle(program);
}

Result<bool> CompileChoices::stopped(const heddle_model* model) const {
  if (stop_after.empty()) return false;
  HEDDLE_ASSIGN_OR_RETURN(const heddle_compile_options wanted, options());
  char* text = nullptr;
  HEDDLE_RETURN_IF_ERROR(
      to_status(heddle_compile_until(model, &wanted, stop_after.c_str(), &text)));
  std::fputs(text, stdout);
  heddle_string_free(text);
  return true;
}

}  // namespace heddle::tools
