#include "compiler/tune.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/library_tasks.h"
#include "compiler/mixed_guard.h"
#include "cost/chain_cost.h"
#include "hlo/builder.h"
#include "schedule/chain_tuning.h"
#include "schedule/place.h"
#include "schedule/pooled.h"
#include "schedule/tuning.h"
#include "schedule/winograd_tuning.h"

namespace heddle::compiler {

namespace {

using hlo::Instr;
using hlo::Opcode;

Instr* find_product(hlo::Computation* computation) {
  for (Instr* instr : computation->instrs())
    if (instr->is(Opcode::dot) || instr->is(Opcode::convolution)) return instr;
  return nullptr;
}

// The parameter that packed weights come from; null where B is not packed.
const Instr* packed_source(const Instr* product) {
  const Instr* at = product->operand(1);
  while (at->is(Opcode::reshape) || at->is(Opcode::transpose) || at->is(Opcode::slice) ||
         at->is(Opcode::bitcast))
    at = at->operand(0);
  return at->is(Opcode::parameter) && at != product->operand(1) ? at : nullptr;
}

}  // namespace

tensor::Literal sample_weights(const tensor::Shape& shape) {
  tensor::Literal literal(shape.without_layout());
  auto* values = static_cast<float*>(literal.mutable_data());
  uint32_t state = 1;
  for (int64_t i = 0; i < shape.elems(); ++i) {
    state = state * 1664525u + 1013904223u;
    values[i] = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / (1 << 23);
  }
  return literal;
}

std::unique_ptr<hlo::Module> make_sample(const hlo::Computation& fused) {
  auto sample = std::make_unique<hlo::Module>("sample");
  hlo::Computation* entry = sample->clone_computation(fused, "entry");
  sample->set_entry(entry);
  const std::vector<Instr*> members = entry->instrs();
  for (Instr* product : members) {
    if ((!product->is(Opcode::dot) && !product->is(Opcode::convolution)) || !packed_source(product))
      continue;
    hlo::Builder b(entry);
    Instr* constant = b.constant(sample_weights(product->operand(1)->shape()));
    b.check();
    entry->replace_operand(product, 1, constant);
  }
  entry->sort();
  return sample;
}

namespace {

bool is_f32(const stage::PlacedFusion& placed) {
  return std::all_of(
      placed.graph.inputs.begin(), placed.graph.inputs.end(),
      [](const stage::Input& input) { return input.shape.type() == tensor::Type::f32; });
}

// Calls visit(fusion, placed, key) for each fusion that is a chain, or a convolution with its pool.
template <typename Visit>
Status for_each_chain(std::unique_ptr<hlo::Module> module, const target::Target& target,
                      const Options& options, Visit&& visit) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fuse_only(std::move(module), target, options));
  for (const hlo::Computation* computation : fused->post_order()) {
    for (const Instr* fusion : computation->instrs()) {
      if (!fusion->is(Opcode::fusion)) continue;
      const stage::PlacedFusion placed =
          schedule::place(*fusion->called().at(0), target, options.numerics != Numerics::strict);
      const bool pooled = stage::is_pooled(placed);
      if ((stage::is_chain(placed) || pooled) && is_f32(placed))
        visit(fusion, placed, pooled ? schedule::pooled_key(placed) : schedule::chain_key(placed));
    }
  }
  return {};
}

// Chains of products that may be one kernel; the default is tried first.
Status add_chains(std::unique_ptr<hlo::Module> module, const target::Target& target,
                  const Options& options, std::vector<TuneTask>* tasks) {
  Options any = options;
  any.library = "none";
  any.any_chain = true;
  std::set<std::string> taken;
  Options taken_options = any;
  taken_options.any_chain = false;
  HEDDLE_RETURN_IF_ERROR(for_each_chain(module->clone(), target, taken_options,
                                        [&](const Instr*, const stage::PlacedFusion&,
                                            const std::string& key) { taken.insert(key); }));
  std::map<std::string, size_t> places;
  return for_each_chain(
      std::move(module), target, any,
      [&](const Instr* fusion, const stage::PlacedFusion& placed, const std::string& key) {
        const auto [place, added] = places.try_emplace(key, tasks->size());
        if (!added) {
          ++(*tasks)[place->second].uses;
          return;
        }
        TuneTask task;
        task.key = key;
        task.name = fusion->name();
        task.records = {schedule::kApartRecord, schedule::kChainRecord};
        if (taken.count(key) > 0) std::swap(task.records[0], task.records[1]);
        task.candidates = 2;
        task.numerics = options.numerics;
        for (const stage::Stage& stage : placed.graph.stages)
          if (stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv)
            task.flops += 2.0 * static_cast<double>(stage.out_elems()) *
                          static_cast<double>(stage.red_elems());
        task.sample = make_sample(*fusion->called().at(0));
        tasks->push_back(std::move(task));
      });
}

// The product of a fusion that is one kernel of the GEMM family, in f32.
struct Product {
  stage::PlacedFusion placed;
  stage::GemmShape shape;
  const stage::Stage* stage = nullptr;  // of `placed`
  const Instr* instr = nullptr;
  int64_t a_bytes = 0;
};

std::optional<Product> product_of(hlo::Computation* fused, const target::Target& target,
                                  bool fast_forms) {
  Product result;
  result.instr = find_product(fused);
  if (!result.instr) return std::nullopt;
  result.placed = schedule::place(*fused, target, fast_forms);
  if (!stage::is_gemm(result.placed)) return std::nullopt;
  const stage::StageGraph& graph = result.placed.graph;
  const auto& row = std::get<stage::Row>(result.placed.schedule.nodes[0]);
  result.stage = &graph.stage(row.joined[0]);
  result.shape = row.gemm()->shape;
  const stage::Load& a = result.stage->loads[static_cast<size_t>(result.shape.a_load)];
  result.a_bytes = graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes();
  if (result.stage->values[0].type != tensor::Type::f32 || result.shape.type != tensor::Type::f32 ||
      result.instr->operand(1)->shape().type() != tensor::Type::f32)
    return std::nullopt;  // records are of f32
  return result;
}

TuneTask product_task(const Product& product, const target::Target& target, size_t most) {
  const bool packed = packed_source(product.instr) != nullptr;
  TuneTask task;
  task.key = schedule::gemm_key(product.shape, *product.stage, product.a_bytes);
  task.name = product.instr->name();
  task.flops = 2.0 * static_cast<double>(product.stage->out_elems()) *
               static_cast<double>(product.stage->red_elems());
  const int64_t columns = product.shape.n_extent, depth = product.shape.k_extent;
  const int64_t rows = product.stage->out_elems() / columns;
  if (packed && task.key == schedule::gemm_key(rows, columns, depth)) {
    task.rows = rows;
    task.columns = columns;
    task.depth = depth;
  }
  for (const stage::Gemm& gemm : schedule::gemm_candidates(
           product.shape, *product.stage, product.a_bytes, target, packed, most, &task.candidates))
    task.records.push_back(to_string(gemm));
  return task;
}

// The direct form against Winograd's, for a convolution whose direct form is a task, too.
std::optional<TuneTask> winograd_task(const Product& product, const target::Target& target,
                                      size_t most) {
  stage::WinogradShape shape;
  if (!packed_source(product.instr) ||
      !schedule::match_winograd(product.shape, *product.stage, target, &shape))
    return std::nullopt;
  const auto records = schedule::winograd_candidates(shape, target, std::max<size_t>(most, 2) - 1);
  if (records.empty()) return std::nullopt;
  TuneTask task;
  task.key = schedule::winograd_key(shape);
  task.name = product.instr->name();
  task.flops = 2.0 * static_cast<double>(product.stage->out_elems()) *
               static_cast<double>(product.stage->red_elems());
  stage::Winograd preferred;
  const bool winograd_first =
      static_cast<bool>(schedule::prefer_winograd(shape, target, &preferred));
  if (winograd_first) task.records.push_back(to_string(preferred));
  task.records.emplace_back(schedule::kDirectRecord);
  for (const stage::Winograd& record : records)
    if (!winograd_first || !(record == preferred)) task.records.push_back(to_string(record));
  task.candidates = static_cast<int64_t>(task.records.size());
  if (task.records.size() > most) task.records.resize(most);
  task.tolerance = 4 * schedule::kWinogradErrorLimit;
  task.numerics = Numerics::relaxed;
  return task;
}

// The whole module in f32 and in mixed precision, if cost decides; it uses the records of all its
// kernels, so it comes last.
Status add_mixed_task(std::unique_ptr<hlo::Module> module, const target::Target& target,
                      const Options& options, std::vector<TuneTask>* tasks) {
  if (options.amp != Amp::automatic) return {};
  Report report;
  HEDDLE_RETURN_IF_ERROR(fuse_only(module->clone(), target, options, &report));
  if (!report.mixed || !report.mixed->run) return {};
  TuneTask task;
  task.key = report.mixed->run->key;
  task.name = module->name();
  task.records = {kF32Record, report.mixed->type};
  task.candidates = 2;
  task.whole = true;
  task.least_gain = 1 / (1 - kLeastMixedGain);
  task.numerics = options.numerics;
  task.sample = std::move(module);
  tasks->push_back(std::move(task));
  return {};
}

}  // namespace

Result<std::vector<TuneTask>> find_tune_tasks(std::unique_ptr<hlo::Module> module,
                                              const target::Target& target, const Options& options,
                                              size_t candidates) {
  // Existing records would decide the panels; they must not decide what is tried.
  target::Target untuned = target;
  untuned.records = nullptr;
  // Products are not chained: in a chain they have the same tiles.
  Options apart = options;
  apart.library = "none";
  if (apart.fuse == Fuse::stitch) apart.fuse = Fuse::greedy;
  // Convolutions are in their direct form.
  const bool relaxed = options.numerics == Numerics::relaxed;
  if (relaxed) apart.numerics = Numerics::standard;
  std::vector<TuneTask> tasks, chains;  // a chain is measured with the records of its products
  if (options.fuse == Fuse::stitch)
    HEDDLE_RETURN_IF_ERROR(add_chains(module->clone(), untuned, options, &chains));
  HEDDLE_RETURN_IF_ERROR(add_library_tasks(module->clone(), untuned, options, &chains));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fuse_only(module->clone(), untuned, apart));
  std::map<std::string, size_t> places;
  auto add = [&](TuneTask task, hlo::Computation* called) {
    const auto [place, added] = places.try_emplace(task.key, tasks.size());
    if (!added) {
      ++tasks[place->second].uses;
      return;
    }
    task.sample = make_sample(*called);
    tasks.push_back(std::move(task));
  };
  for (const hlo::Computation* computation : fused->post_order()) {
    for (const Instr* fusion : computation->instrs()) {
      if (!fusion->is(Opcode::fusion)) continue;
      hlo::Computation* called = fusion->called().at(0);
      const auto product = product_of(called, untuned, options.numerics != Numerics::strict);
      if (!product) continue;
      TuneTask task = product_task(*product, untuned, candidates);
      task.numerics = apart.numerics;
      add(std::move(task), called);
      if (!relaxed) continue;
      if (auto winograd = winograd_task(*product, untuned, candidates))
        add(std::move(*winograd), called);
    }
  }
  for (std::vector<TuneTask>* some : {&tasks, &chains})
    std::stable_sort(some->begin(), some->end(), [](const TuneTask& a, const TuneTask& b) {
      return a.flops * static_cast<double>(a.uses) > b.flops * static_cast<double>(b.uses);
    });
  for (TuneTask& chain : chains) tasks.push_back(std::move(chain));
  HEDDLE_RETURN_IF_ERROR(add_mixed_task(std::move(module), untuned, options, &tasks));
  return tasks;
}

target::Target with_record(const target::Target& target, const std::string& key,
                           const std::string& record) {
  target::Target result = target;
  auto records = target.records
                     ? std::make_shared<std::map<std::string, std::string>>(*target.records)
                     : std::make_shared<std::map<std::string, std::string>>();
  (*records)[key] = record;
  result.records = std::move(records);
  return result;
}

}  // namespace heddle::compiler
