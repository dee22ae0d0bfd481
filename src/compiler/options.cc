// Options for the passes, and as text in a program.
#include "compiler/options.h"

#include <algorithm>

#include "compiler/passes.h"
#include "lower/passes.h"

namespace heddle::compiler {

namespace {

// The disabled passes and rewrites that belong to a table.
template <typename Table>
std::vector<std::string> disabled_in(const Table& table, const Options& options) {
  std::vector<std::string> result;
  for (const std::string& name : options.disable)
    if (table.find(name.substr(0, name.find('.')))) result.push_back(name);
  return result;
}

const lower::KernelPassTable& kernel_passes() {
  static const lower::KernelPassTable kTable(lower::kernel_passes());
  return kTable;
}

// The rest of a limit after `changes` changes. -1: no limit.
int64_t left_of(int64_t limit, size_t changes) {
  return limit < 0 ? limit : std::max<int64_t>(0, limit - static_cast<int64_t>(changes));
}

}  // namespace

Status check_pass_names(const Options& options) {
  for (const std::string& name : options.disable) {
    const std::string pass = name.substr(0, name.find('.'));
    const ModulePass* known = module_passes().find(pass);
    if (!known && !kernel_passes().find(pass))
      return user_error("disabled: no pass is called `{}`; heddle opt --list names them", pass);
    // A required pass that simplifies may be disabled: other passes may do without it.
    if (known && known->required && (!graph_passes().find(pass) || pass == "inline_kept_calls"))
      return user_error("disabled: nothing runs without {}, which {}", pass, known->summary);
  }
  return {};
}

pass::RunOptions pass_options(const Options& options) {
  pass::RunOptions run;
  run.disabled = disabled_in(graph_passes(), options);
  if (options.numerics == Numerics::strict)
    for (const pass::PassInfo* pass : graph_passes().rows())
      if (pass->rounds) run.disabled.emplace_back(pass->name);
  run.bisect_limit = options.bisect_limit;
  run.stop_after = options.stop_after;
  run.dump_directory = options.dump_directory;
  return run;
}

pass::RunOptions fusing_pass_options(const Options& options, size_t changes) {
  pass::RunOptions run;
  run.disabled = disabled_in(module_passes(), options);
  if (options.numerics == Numerics::strict)
    for (const ModulePass* pass : module_passes().rows())
      if (pass->rounds) run.disabled.emplace_back(pass->name);
  run.reproduce = false;  // a dump has the module before it
  run.bisect_limit = left_of(options.bisect_limit, changes);
  run.dump_directory = options.dump_directory;
  run.dump_name = "fuse";
  return run;
}

pass::RunOptions kernel_pass_options(const Options& options, const std::string& fusion,
                                     size_t changes, Status* dump_failure) {
  pass::RunOptions run;
  run.dump_failure = dump_failure;
  run.disabled = disabled_in(kernel_passes(), options);
  run.reproduce = false;  // a dump has the kernel before it
  run.bisect_limit = left_of(options.bisect_limit, changes);
  if (!options.dump_directory.empty()) {
    run.dump_directory = options.dump_directory + "/lower";
    run.dump_name = fusion;
  }
  return run;
}

fuse::Mode fuse_mode(const Options& options) {
  if (options.level == Level::O0) return fuse::Mode::off;
  switch (options.fuse) {
    case Fuse::off:
      return fuse::Mode::off;
    case Fuse::greedy:
      return fuse::Mode::greedy;
    case Fuse::xla:
      return fuse::Mode::xla;
    case Fuse::stitch:
      break;
  }
  // O1 compiles faster without the search.
  const bool searches = !options.any_chain && options.level != Level::O1;
  return searches ? fuse::Mode::stitch : fuse::Mode::chains;
}

plan::Options plan_options(const Options& options) {
  const bool cheapest = options.level == Level::O2;
  plan::Options plan;
  plan.order = options.order.value_or(cheapest ? plan::Order::cheapest : plan::Order::as_is);
  plan.keep_order = options.order.has_value();
  plan.most_streams = std::max<int64_t>(options.streams, 0);
  plan.static_memory = options.memory == Memory::planned;
  plan.memory_limit_bytes = options.memory_limit_bytes;
  plan.own_memory = options.own_memory;
  return plan;
}

namespace {

std::string value_text(bool value) { return value ? "on" : "off"; }
std::string value_text(int64_t value) { return value < 0 ? "any" : std::to_string(value); }
const std::string& value_text(const std::string& value) { return value; }
std::string value_text(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return text;
}

// An option of options.def: its value, and whether that is the default.
struct Told {
  enum class Part { said, told, keyed, target, where, unkept, none };
  Part part;
  const char* name;
  std::string value;
  bool plain;
};

std::vector<Told> told_options(const Options& options) {
  const Options standard;
  std::vector<Told> all;
  const auto add = [&](Told::Part part, const char* name, const auto& value, const auto& plain,
                       std::string text) {
    all.push_back({part, name, std::move(text), value == plain});
  };
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) \
  add(Told::Part::part, #field, options.field, standard.field, choice_word(options.field, words));
#define HEDDLE_TEXT(part, Type, field, plain, value, help) HEDDLE_TOLD_##part(part, field)
#define HEDDLE_NUMBER(part, Type, field, ...) HEDDLE_TOLD_##part(part, field)
#define HEDDLE_INNER(part, Type, field, plain) HEDDLE_TOLD(part, field)
#define HEDDLE_TOLD(part, field) \
  add(Told::Part::part, #field, options.field, standard.field, value_text(options.field));
#define HEDDLE_TOLD_said HEDDLE_TOLD
#define HEDDLE_TOLD_told HEDDLE_TOLD
#define HEDDLE_TOLD_keyed HEDDLE_TOLD
#define HEDDLE_TOLD_target(part, field)
#define HEDDLE_TOLD_where(part, field)
#define HEDDLE_TOLD_none(part, field)
#include "compiler/options.def"
#undef HEDDLE_TOLD
#undef HEDDLE_TOLD_said
#undef HEDDLE_TOLD_told
#undef HEDDLE_TOLD_keyed
#undef HEDDLE_TOLD_target
#undef HEDDLE_TOLD_where
#undef HEDDLE_TOLD_none
  return all;
}

}  // namespace

std::string options_text(const Options& options) {
  std::string text;
  for (const Told& one : told_options(options))
    if (one.part == Told::Part::said || (one.part == Told::Part::told && !one.plain))
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", one.name, one.value);
  return text;
}

std::optional<std::string> options_key(const Options& options) {
  std::string text = options_text(options);
  for (const Told& one : told_options(options)) {
    if (one.plain) continue;
    if (one.part == Told::Part::unkept) return std::nullopt;
    if (one.part == Told::Part::keyed) text += fmt::format(" {}={}", one.name, one.value);
  }
  return text;
}

}  // namespace heddle::compiler
