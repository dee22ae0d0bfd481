// What options mean to others: to the passes, and in a program.
#include "compiler/options.h"

#include <algorithm>

#include "compiler/passes.h"
#include "lower/passes.h"
#include "opt/passes.h"

namespace heddle::compiler {

namespace {

// Those of the disabled passes, and of their rewrites, that a table has.
template <typename Table>
std::vector<std::string> disabled_in(const Table& table, const Options& options) {
  std::vector<std::string> result;
  for (const std::string& name : options.disabled_passes)
    if (table.find(name.substr(0, name.find('.')))) result.push_back(name);
  return result;
}

const pass::PassTable& graph_passes() {
  static const pass::PassTable kTable(opt::passes());
  return kTable;
}

const lower::KernelPassTable& kernel_passes() {
  static const lower::KernelPassTable kTable(lower::kernel_passes());
  return kTable;
}

// Of a limit of changes, behind so many. -1: none.
int64_t left_of(int64_t limit, size_t changes) {
  return limit < 0 ? limit : std::max<int64_t>(0, limit - static_cast<int64_t>(changes));
}

}  // namespace

Status check_pass_names(const Options& options) {
  for (const std::string& name : options.disabled_passes) {
    const std::string pass = name.substr(0, name.find('.'));
    const ModulePass* known = module_passes().find(pass);
    if (!known && !kernel_passes().find(pass))
      return user_error("disabled: no pass is called `{}`; heddle opt --list names them", pass);
    // Of what is simplified others may well make do without what a pass does.
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
  run.reproduce = false;  // the module in front is a dump away
  run.bisect_limit = left_of(options.bisect_limit, changes);
  run.dump_directory = options.dump_directory;
  run.dump_name = "fuse";
  return run;
}

pass::RunOptions kernel_pass_options(const Options& options, const std::string& fusion,
                                     size_t changes) {
  pass::RunOptions run;
  run.disabled = disabled_in(kernel_passes(), options);
  run.reproduce = false;  // the kernel in front is a dump away
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
  return options.any_chain ? fuse::Mode::chains : fuse::Mode::stitch;
}

plan::Options plan_options(const Options& options) {
  const bool cheapest = options.level == Level::O2;
  plan::Options plan;
  plan.order = options.order.value_or(cheapest ? plan::Order::cheapest : plan::Order::as_is);
  plan.keep_order = options.order.has_value();
  plan.most_streams = options.most_streams;
  plan.static_memory = options.static_memory;
  plan.memory_limit_bytes = options.memory_limit_bytes;
  plan.own_memory = options.own_memory;
  return plan;
}

std::string options_text(const Options& options) {
  static constexpr const char* kLevels[] = {"O0", "O1", "O2"};
  static constexpr const char* kFuse[] = {"off", "greedy", "xla", "stitch"};
  std::string text =
      fmt::format("level={} fuse={} memory={} precision={}",
                  kLevels[static_cast<int>(options.level)], kFuse[static_cast<int>(options.fuse)],
                  options.static_memory ? "static" : "dynamic", options.precision);
  static constexpr const char* kOrders[] = {"module", "bfs", "dfs", "list", "beam", "cheapest"};
  if (options.order) text += fmt::format(" order={}", kOrders[static_cast<int>(*options.order)]);
  if (options.most_streams != 1)
    text += " streams=" +
            (options.most_streams == 0 ? std::string("any") : std::to_string(options.most_streams));
  if (options.own_memory) text += " own_memory";
  if (options.library != "none") text += " library=" + options.library;
  return text;
}

}  // namespace heddle::compiler
