#include "compiler/tune.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/library_tasks.h"
#include "hlo/builder.h"
#include "schedule/chain_cost.h"
#include "schedule/place.h"
#include "schedule/pooled.h"
#include "schedule/tuning.h"

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

bool is_f32(const schedule::PlacedFusion& placed) {
  return std::all_of(
      placed.graph.inputs.begin(), placed.graph.inputs.end(),
      [](const schedule::Input& input) { return input.shape.type() == tensor::Type::f32; });
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
      const schedule::PlacedFusion placed =
          schedule::place(*fusion->called().at(0), target, options.numerics != Numerics::strict);
      const bool pooled = schedule::is_pooled(placed);
      if ((schedule::is_chain(placed) || pooled) && is_f32(placed))
        visit(fusion, placed, pooled ? pooled_key(placed) : chain_key(placed));
    }
  }
  return {};
}

// Rows of products that may be one kernel; what is done without measuring is tried first.
Status add_chains(std::unique_ptr<hlo::Module> module, const target::Target& target,
                  const Options& options, std::vector<TuneTask>* tasks) {
  Options any = options;
  any.library = "none";
  any.any_chain = true;
  std::set<std::string> taken;
  Options taken_options = any;
  taken_options.any_chain = false;
  HEDDLE_RETURN_IF_ERROR(for_each_chain(module->clone(), target, taken_options,
                                        [&](const Instr*, const schedule::PlacedFusion&,
                                            const std::string& key) { taken.insert(key); }));
  std::map<std::string, size_t> places;
  return for_each_chain(
      std::move(module), target, any,
      [&](const Instr* fusion, const schedule::PlacedFusion& placed, const std::string& key) {
        const auto [place, added] = places.try_emplace(key, tasks->size());
        if (!added) {
          ++(*tasks)[place->second].uses;
          return;
        }
        TuneTask task;
        task.key = key;
        task.name = fusion->name();
        task.chain_first = taken.count(key) > 0;
        for (const schedule::Stage& stage : placed.graph.stages)
          if (stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv)
            task.flops += 2.0 * static_cast<double>(stage.out_elems()) *
                          static_cast<double>(stage.red_elems());
        task.sample = make_sample(*fusion->called().at(0));
        tasks->push_back(std::move(task));
      });
}

}  // namespace

Result<std::vector<TuneTask>> find_tune_tasks(std::unique_ptr<hlo::Module> module,
                                              const target::Target& target, const Options& options,
                                              size_t candidates) {
  // Records that are there already decide what panels are, not what is worth trying.
  target::Target untuned = target;
  untuned.records = nullptr;
  // Each product by itself: in a chain it has the same tile.
  Options apart = options;
  apart.library = "none";
  if (apart.fuse == Fuse::stitch) apart.fuse = Fuse::greedy;
  std::vector<TuneTask> tasks, chains;
  if (options.fuse == Fuse::stitch)
    HEDDLE_RETURN_IF_ERROR(add_chains(module->clone(), untuned, options, &chains));
  HEDDLE_RETURN_IF_ERROR(add_library_tasks(module->clone(), untuned, options, &chains));
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fuse_only(std::move(module), untuned, apart));
  std::map<std::string, size_t> places;
  for (const hlo::Computation* computation : fused->post_order()) {
    for (const Instr* fusion : computation->instrs()) {
      if (!fusion->is(Opcode::fusion)) continue;
      hlo::Computation* called = fusion->called().at(0);
      const Instr* product = find_product(called);
      if (!product) continue;
      const schedule::PlacedFusion placed =
          schedule::place(*called, untuned, options.numerics != Numerics::strict);
      if (!schedule::is_gemm(placed)) continue;
      const auto& row = std::get<schedule::Row>(placed.schedule.nodes[0]);
      const schedule::Stage& stage = placed.graph.stage(row.joined[0]);
      const schedule::GemmShape shape = match_gemm(placed.graph, row.joined[0]).shape;
      const schedule::Load& a = stage.loads[static_cast<size_t>(shape.a_load)];
      const int64_t a_bytes =
          placed.graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes();
      if (stage.values[0].type != tensor::Type::f32 || shape.type != tensor::Type::f32 ||
          product->operand(1)->shape().type() != tensor::Type::f32)
        continue;  // records are of f32
      TuneTask task;
      task.key = gemm_key(shape, stage, a_bytes);
      const auto [place, added] = places.try_emplace(task.key, tasks.size());
      if (!added) {
        ++tasks[place->second].uses;
        continue;
      }
      const bool packed = packed_source(product) != nullptr;
      task.name = product->name();
      task.flops =
          2.0 * static_cast<double>(stage.out_elems()) * static_cast<double>(stage.red_elems());
      task.candidates = gemm_candidates(shape, stage, a_bytes, target, packed, candidates);
      task.sample = make_sample(*called);
      tasks.push_back(std::move(task));
    }
  }
  for (TuneTask& chain : chains) tasks.push_back(std::move(chain));
  std::stable_sort(tasks.begin(), tasks.end(), [](const TuneTask& a, const TuneTask& b) {
    return a.flops * static_cast<double>(a.uses) > b.flops * static_cast<double>(b.uses);
  });
  return tasks;
}

std::vector<std::string> TuneTask::records() const {
  if (!choices.empty()) return choices;
  if (candidates.empty()) {
    std::vector<std::string> both{schedule::kApartRecord, schedule::kChainRecord};
    if (chain_first) std::swap(both[0], both[1]);
    return both;
  }
  std::vector<std::string> texts;
  for (const schedule::Gemm& gemm : candidates) texts.push_back(schedule::to_string(gemm));
  return texts;
}

target::Target with_record(const target::Target& target, const std::string& key,
                           const schedule::Gemm& record) {
  return with_record(target, key, schedule::to_string(record));
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
