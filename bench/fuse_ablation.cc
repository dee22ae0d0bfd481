// The search for a cover with one thing changed at a time: evaluators, patterns kept for
// a vertex, plans kept, packing of what has no edge between it.
//
//   fuse_ablation [--target NAME] [--modes] MODULE.hlo...     (heddle compile MODEL --dump DIR
//   writes 1-optimized.hlo)
//
// A line of JSON for each module and variant: kernels, nanoseconds predicted by the latency
// evaluator for all kernels other than products, seconds of this thread that fusing took.
// `--modes`: the ways of fusing instead. The default target is spr. Packing is searched only for
// GPUs, so `no remote` is a variant only there.
#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cost/latency.h"
#include "fuse/fuse.h"
#include "hlo/text.h"
#include "schedule/place.h"

namespace {

using heddle::fuse::Mode;
using heddle::fuse::Pricing;
using heddle::fuse::SearchOptions;
using heddle::fuse::SearchReport;

struct Variant {
  const char* name;
  Mode mode;
  SearchOptions options;
};

std::vector<Variant> variants_of_search(const heddle::target::Target& target) {
  std::vector<Variant> variants{{"search", Mode::stitch, {}}};
  auto add = [&](const char* name) -> SearchOptions& {
    variants.push_back({name, Mode::stitch, {}});
    return variants.back().options;
  };
  add("without").search = false;
  add("top 1").top = 1;
  add("top 5").top = 5;
  add("beam 1").beam = 1;
  add("beam 1, top 1") = [] {
    SearchOptions options;
    options.beam = options.top = 1;
    return options;
  }();
  if (target.kind == heddle::target::DeviceKind::gpu) add("no remote").remote = false;
  add("no refinement").refinements = 0;
  add("no enumeration").most_enumerated = 0;
  add("kernels not counted").latency_error = -1;
  variants.back().options.least_gain_ns_by_kernel = 0;
  add("patterns by latency").patterns = Pricing::latency;
  add("patterns by calls").patterns = Pricing::calls;
  add("covers by delta").covers = Pricing::delta;
  add("no evaluator") = [] {
    SearchOptions options;
    options.patterns = options.covers = Pricing::calls;
    return options;
  }();
  return variants;
}

struct Kernels {
  int64_t count = 0;
  double ns = 0;
};

Kernels kernels_of(const heddle::hlo::Module& module, const heddle::target::Target& target) {
  Kernels kernels;
  for (const auto& computation : module.computations()) {
    for (const auto* instr : computation->instrs()) {
      if (!instr->is(heddle::hlo::Opcode::fusion)) continue;
      const auto placed = heddle::schedule::place(*instr->called()[0], target);
      if (!placed.decision) continue;
      const auto latency = heddle::cost::latency(placed, target);
      if (latency.by_template) continue;
      ++kernels.count;
      kernels.ns += latency.ns;
    }
  }
  return kernels;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int measure(const std::string& path, const heddle::target::Target& target,
            const std::vector<Variant>& variants) {
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "{}: cannot be read\n", path);
    return 1;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto parsed = heddle::hlo::parse_module(text);
  if (!parsed) {
    fmt::print(stderr, "{}: {}\n", path, parsed.error().message);
    return 1;
  }
  if (target.kind == heddle::target::DeviceKind::cpu &&
      !heddle::fuse::pack_weights(parsed->get(), target))
    return 1;
  const std::string name = std::filesystem::path(path).stem();
  for (const Variant& variant : variants) {
    const auto module = (*parsed)->clone();
    size_t operators = 0;
    for (const auto& computation : module->computations())
      operators += computation->instrs().size();
    SearchReport report;
    const double begin = thread_seconds();
    if (!heddle::fuse::fuse(module.get(), target, variant.mode, nullptr, variant.options, &report))
      return 1;
    const double seconds = thread_seconds() - begin;
    const Kernels kernels = kernels_of(*module, target);
    fmt::print(
        "{{\"module\": \"{}\", \"operators\": {}, \"variant\": \"{}\", \"kernels\": {}, \"ns\": "
        "{:.0f}, \"seconds\": {:.4f}, \"unions\": {}, \"placements\": {}, \"peak_bytes\": {}}}\n",
        name, operators, variant.name, kernels.count, kernels.ns, seconds, report.unions,
        report.placements, report.peak_bytes);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int count, char** values) {
  std::string name = "spr";
  bool modes = false;
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(values[i], "--modes") == 0)
      modes = true;
    else if (std::strcmp(values[i], "--target") == 0 && i + 1 < count)
      name = values[++i];
    else
      paths.emplace_back(values[i]);
  }
  const auto target = heddle::target::find_target(name);
  if (!target || paths.empty()) {
    fmt::print(stderr, "usage: fuse_ablation [--target NAME] [--modes] MODULE.hlo...\n");
    return 1;
  }
  const std::vector<Variant> variants = modes ? std::vector<Variant>{{"off", Mode::off, {}},
                                                                     {"xla", Mode::xla, {}},
                                                                     {"greedy", Mode::greedy, {}},
                                                                     {"stitch", Mode::stitch, {}}}
                                              : variants_of_search(*target);
  int status = 0;
  for (const std::string& path : paths) status |= measure(path, *target, variants);
  return status;
}
