#include "compiler/library_tasks.h"

#include <algorithm>
#include <map>

#include "compiler/library_calls.h"
#include "hlo/builder.h"
#include "hlo/library_call.h"
#include "library/library.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using hlo::Opcode;

// The gain that a library needs: with less, our own kernel, which has no dependency, is kept.
constexpr double kLeastLibraryGain = 1.04;

bool is_product(const Instr* instr) {
  return instr->is(Opcode::dot) || instr->is(Opcode::convolution);
}

bool depends_on_constants(const Instr* value) {
  if (value->is(Opcode::constant)) return true;
  if (value->operands().empty() || value->is(Opcode::while_) || hlo::has_effect(*value))
    return false;
  return std::all_of(value->operands().begin(), value->operands().end(), depends_on_constants);
}

// The fusion as a sample whose weights are constants where the model's are; null: it does not have
// exactly one product.
std::unique_ptr<hlo::Module> sample_of(const Instr& fusion) {
  const hlo::Computation& called = *fusion.called().at(0);
  const auto products = std::count_if(called.instrs().begin(), called.instrs().end(), is_product);
  if (products != 1) return nullptr;
  std::unique_ptr<hlo::Module> sample = make_sample(called);
  hlo::Computation* entry = sample->entry();
  Instr* product = *std::find_if(entry->instrs().begin(), entry->instrs().end(), is_product);
  const Instr* weights = product->operand(1);
  if (weights->is(Opcode::parameter) &&
      depends_on_constants(fusion.operand(static_cast<size_t>(weights->parameter_number())))) {
    hlo::Builder b(entry);
    Instr* constant = b.constant(sample_weights(weights->shape()));
    b.check();
    entry->replace_operand(product, 1, constant);
    entry->sort();
  }
  return sample;
}

// Kernels with the same product, by the number of instructions of their epilogue.
struct Surrounded {
  std::string name;
  int64_t uses = 0;
  std::unique_ptr<hlo::Module> sample;
};
struct Shape {
  size_t first = 0;  // shapes in the order of the module
  int64_t uses = 0, tasks = 1;
  double flops = 0;
  std::map<size_t, Surrounded> surrounded;

  // The kernel that is measured for all: the most frequent one, of equally frequent ones the
  // smallest.
  Surrounded& usual() {
    Surrounded* most = &surrounded.begin()->second;
    for (auto& [size, one] : surrounded)
      if (one.uses > most->uses) most = &one;
    return *most;
  }
};

// The library call for a sample; nullopt: none, or several.
Result<std::optional<hlo::LibraryCall>> call_in(const hlo::Module& sample,
                                                const target::Target& target,
                                                const Options& options) {
  Options forced = options;
  forced.library = library::kOneDnn;
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fuse_only(sample.clone(), target, forced));
  std::optional<hlo::LibraryCall> found;
  for (const Instr* instr : fused->entry()->instrs()) {
    std::optional<hlo::LibraryCall> call = hlo::library_call(*instr);
    if (call && found) return std::optional<hlo::LibraryCall>();
    if (call) found = std::move(call);
  }
  return found;
}

}  // namespace

Status add_library_tasks(std::unique_ptr<hlo::Module> module, const target::Target& target,
                         const Options& options, std::vector<TuneTask>* tasks) {
  if (options.library == "none") return {};
  const library::Opened opened = library::open(library::kOneDnn, target);
  if (!opened.library) return {};
  const library::Facts& facts = opened.library->facts();
  Options own = options;
  own.library = "none";
  if (own.fuse == Fuse::stitch) own.fuse = Fuse::greedy;  // products are not chained
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> fused,
                          fuse_only(std::move(module), target, own));
  std::map<std::string, Shape> shapes;
  size_t places = 0;
  for (const hlo::Computation* computation : fused->post_order()) {
    for (const Instr* fusion : computation->instrs()) {
      if (!fusion->is(Opcode::fusion)) continue;
      std::unique_ptr<hlo::Module> sample = sample_of(*fusion);
      if (!sample) continue;
      HEDDLE_ASSIGN_OR_RETURN(const std::optional<hlo::LibraryCall> call,
                              call_in(*sample, target, own));
      if (!call) continue;
      HEDDLE_ASSIGN_OR_RETURN(const library::Operation operation,
                              library::parse_operation(call->operation));
      const std::string key = library::key_of(operation, facts.name + " " + facts.version);
      Shape& shape = shapes[key];
      if (shape.uses++ == 0) shape.first = places++;
      shape.tasks = call->tasks;
      shape.flops = operation.flops();
      Surrounded& surrounded = shape.surrounded[fusion->called()[0]->instrs().size()];
      if (surrounded.uses++ > 0) continue;
      surrounded.name = fusion->name();
      surrounded.sample = std::move(sample);
    }
  }
  std::vector<TuneTask> found(shapes.size());
  for (auto& [key, shape] : shapes) {
    Surrounded& usual = shape.usual();
    TuneTask& task = found[shape.first];
    task.key = key;
    task.name = usual.name;
    task.uses = shape.uses;
    task.flops = shape.flops;
    task.records = {kOwnRecord, facts.name};
    if (shape.tasks > 1) task.records.push_back(facts.name + kWhole);
    task.candidates = static_cast<int64_t>(task.records.size());
    task.library = true;
    task.numerics = options.numerics;
    task.least_gain = kLeastLibraryGain;
    task.sample = std::move(usual.sample);
  }
  for (TuneTask& task : found) tasks->push_back(std::move(task));
  return {};
}

}  // namespace heddle::compiler
