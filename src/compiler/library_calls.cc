#include "compiler/library_calls.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>

#include "compiler/passes.h"
#include "hlo/builder.h"
#include "hlo/library_call.h"
#include "library/library.h"

namespace heddle::compiler {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

// The entry, and the computations that it reaches through loops, branches and calls that are kept.
std::vector<Computation*> computations_with_commands(const hlo::Module& module) {
  std::vector<Computation*> found{module.entry()};
  std::unordered_set<const Computation*> seen{module.entry()};
  for (size_t i = 0; i < found.size(); ++i)
    for (const Instr* instr : found[i]->instrs())
      if (instr->is(Opcode::while_) || instr->is(Opcode::conditional) || instr->is(Opcode::call))
        for (Computation* called : instr->called())
          if (seen.insert(called).second) found.push_back(called);
  return found;
}

// Instructions that depend on constants alone.
std::unordered_set<const Instr*> constants_of(const Computation& computation) {
  std::unordered_set<const Instr*> constants;
  for (const Instr* instr : computation.instrs()) {
    const bool from_constants =
        !instr->operands().empty() && has_trait(instr->opcode(), hlo::pure) &&
        std::all_of(instr->operands().begin(), instr->operands().end(),
                    [&](const Instr* operand) { return constants.count(operand) > 0; });
    if (instr->is(Opcode::constant) || from_constants) constants.insert(instr);
  }
  return constants;
}

// The computation that a call replaces.
Computation* wrap(hlo::Module* module, const LibraryProduct& found) {
  Computation* body = module->add_computation("library");
  hlo::Builder b(body);
  const Instr* product = found.product;
  Instr* x = b.parameter(0, product->operand(0)->shape().without_layout());
  Instr* w = b.parameter(1, product->operand(1)->shape().without_layout());
  Instr* result = body->add(product->opcode(), product->shape().without_layout(), {x, w},
                            product->attrs(), {}, product->name());
  if (found.bias != nullptr) {
    Instr* bias = b.parameter(2, found.bias->shape().without_layout());
    const int64_t column = product->is(Opcode::convolution)
                               ? product->attrs_as<hlo::ConvolutionAttrs>().dims.output_feature
                               : product->shape().rank() - 1;
    result = b.binary(Opcode::add, result, b.broadcast(bias, result->shape().extents(), {column}));
  }
  b.check();
  body->set_root(result);
  return body;
}

class Replacer {
 public:
  Replacer(hlo::Module* module, const target::Target& target, const std::string& name,
           std::shared_ptr<library::Library> library, Decision absent, Report* report)
      : module_(module),
        target_(target),
        automatic_(name == "auto"),
        library_(std::move(library)),
        absent_(std::move(absent)),
        report_(report) {}

  void run() {
    for (Computation* computation : computations_with_commands(*module_)) {
      const std::unordered_set<const Instr*> constants = constants_of(*computation);
      std::vector<Instr*> products;  // collected first: a replacement removes the epilogue, too
      for (Instr* instr : computation->instrs())
        if (instr->is(Opcode::dot) || instr->is(Opcode::convolution)) products.push_back(instr);
      bool changed = false;
      for (Instr* product : products) changed |= visit(product, constants);
      if (!changed) continue;
      computation->remove_dead();
      computation->sort();
    }
  }
  int64_t calls() const { return calls_; }

 private:
  bool visit(Instr* product, const std::unordered_set<const Instr*>& constants) {
    LibraryProduct found;
    std::string why;
    std::unique_ptr<library::Call> call;
    int64_t tasks = 1;
    const Decision decision = decide(product, constants, &found, &why, &tasks, &call);
    if (!decision) {
      if (report_)
        report_->refusals.push_back(
            {product->name(), library::kOneDnn, decision.code(), decision.reason()});
      return false;
    }
    replace(found, why, tasks, *call);
    return true;
  }

  Decision decide(Instr* product, const std::unordered_set<const Instr*>& constants,
                  LibraryProduct* found, std::string* why, int64_t* tasks,
                  std::unique_ptr<library::Call>* call) {
    if (!library_) return absent_;
    if (constants.count(product->operand(0)) > 0)
      return Decision::no("library-once", "{} has a constant left side", product->name());
    if (!product->control_predecessors().empty() || !product->control_successors().empty())
      return Decision::no("library-order", "{} has control edges", product->name());
    if (Decision fits = match_library(product, found); !fits) return fits;
    const library::Facts& facts = library_->facts();
    *why = "asked for";
    *tasks = part_count(found->operation, target_.cores);
    if (automatic_) {
      const auto record = record_of(found->operation);
      if (!record)
        return Decision::no(
            "library-unmeasured",
            "no record says that {} is faster; heddle tune --library auto measures it", facts.name);
      if (*record == facts.name + kWhole)
        *tasks = 1;
      else if (*record != facts.name)
        return Decision::no("library-slower", "measured: our own kernel is not 4% slower than {}",
                            facts.name);
      *why = "measured: faster than our best by more than 4%";
    }
    library::Fixed fixed;
    fixed.b = constants.count(product->operand(1)) > 0;
    library::CallOrNot made = library_->make_call(found->operation, fixed, *tasks);
    *call = std::move(made.call);
    return made.decision;
  }

  std::optional<std::string> record_of(const library::Operation& operation) const {
    if (!target_.records) return std::nullopt;
    const library::Facts& facts = library_->facts();
    const auto found =
        target_.records->find(library::key_of(operation, facts.name + " " + facts.version));
    if (found == target_.records->end()) return std::nullopt;
    return found->second;
  }

  void replace(const LibraryProduct& found, const std::string& why, int64_t tasks,
               const library::Call& call) {
    hlo::CustomCallAttrs attrs;
    attrs.custom_call_target = hlo::kLibraryCall;
    std::vector<Instr*> operands = {found.product->operand(0), found.product->operand(1)};
    if (found.bias != nullptr) operands.push_back(found.bias);
    Computation* computation = found.product->parent();
    Instr* made = computation->add(Opcode::custom_call, found.root->shape().without_layout(),
                                   operands, attrs, {wrap(module_, found)}, found.root->name());
    const library::Facts& facts = library_->facts();
    hlo::LibraryCall text{facts.name, to_string(found.operation), tasks,
                          static_cast<int64_t>(found.operation.flops())};
    made->annotations().emplace_back(hlo::kLibraryAnnotation, hlo::annotation_text(text));
    const std::string name = found.root->name();
    computation->replace_all_uses(found.root, made);
    computation->remove(found.root);
    if (found.root != found.product) computation->remove(found.product);
    computation->rename(made, name);
    ++calls_;
    if (report_)
      report_->library_calls.push_back({made->name(), facts.name + " " + facts.version,
                                        call.implementation(), text.operation, why});
  }

  hlo::Module* module_;
  const target::Target& target_;
  bool automatic_;
  std::shared_ptr<library::Library> library_;
  Decision absent_;
  Report* report_;
  int64_t calls_ = 0;
};

}  // namespace

// Replaces products by library calls. Context::library: a name (all that the library can compute),
// or "auto" (those whose record says so). Every other product has a refusal with a code: those of
// match_library(), of library::open() and make_call(), `library-once` (computed once at load time),
// `library-order` (control edges), `library-unmeasured`, `library-slower`. Error (user): a library
// requested by name is not available.
Result<bool> call_libraries(hlo::Module& module, const Context& context) {
  const std::string& name = context.library;
  if (name == "none") return false;
  const bool automatic = name == "auto";
  library::Opened opened = library::open(automatic ? library::kOneDnn : name, *context.target);
  if (!opened.library && !automatic)
    return user_error("--library={}: {} ({}); install it, or use none or auto", name,
                      opened.decision.reason(), opened.decision.code());
  const std::string version =
      opened.library ? opened.library->facts().name + " " + opened.library->facts().version : "";
  Replacer replacer(&module, *context.target, name, opened.library, opened.decision,
                    context.report);
  replacer.run();
  if (replacer.calls() > 0)
    context.note(fmt::format("library: {} products by {}", replacer.calls(), version));
  return replacer.calls() > 0;
}

}  // namespace heddle::compiler
