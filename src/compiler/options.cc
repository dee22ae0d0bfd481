// What options mean to others: to the passes, and in a program.
#include "compiler/options.h"

namespace heddle::compiler {

pass::RunOptions pass_options(const Options& options) {
  pass::RunOptions run;
  run.disabled = options.disabled_passes;
  if (options.numerics == Numerics::strict)
    run.disabled.insert(run.disabled.end(), {"fold_scale_into_weights", "merge_convolutions",
                                             "online_softmax", "split_cumulative"});
  run.bisect_limit = options.bisect_limit;
  run.stop_after = options.stop_after;
  run.dump_directory = options.dump_directory;
  return run;
}

fuse::Mode fuse_mode(const Options& options) {
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
