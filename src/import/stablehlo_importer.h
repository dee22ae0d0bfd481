// The walk over operations of a StableHLO module, and a handler's view of one operation.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/builder.h"
#include "import/failure.h"
#include "import/fold.h"
#include "import/mlir.h"
#include "import/onnx.h"

namespace heddle::import {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;

using Instrs = std::vector<Instr*>;

// The values of one block being translated into one computation. An inlined function has its own
// frame with the caller's builder; a region has its own frame and builder.
struct Frame {
  hlo::Builder* builder = nullptr;
  std::unordered_map<MlirValue, Instr*> values;
  // The process of a grid that runs it; null: there is only one.
  struct Process* process = nullptr;
};

// Thrown if a shape depends on the value of this parameter of the entry.
struct NeedsParameter {
  int64_t number;
  std::string why;
  int64_t assumed = 1;  // its value if none is given
};

class StablehloImporter;

// One operation. Handlers read operands and attributes, build, and give the results.
class ShloOp {
 public:
  ShloOp(StablehloImporter* importer, const MlirOp& op, Frame* frame);

  const MlirOp& op;
  StablehloImporter& importer;
  Frame& frame;
  hlo::Builder& b;
  Instrs operands, results;
  std::vector<const MlirType*> operand_types, result_types;

  Instr* operand(size_t i) const;
  size_t count() const { return operands.size(); }
  void give(Instr* result) { results.push_back(result); }
  void give_tuple(Instr* tuple);  // gives each of its elements as a result
  // The declared type of result `i`; its shape, which must be static.
  const MlirType& result_type(size_t i) const;
  Shape result_shape(size_t i) const;
  // Attributes. Those without a default must be present.
  Ints ints(std::string_view name) const;
  Ints ints(std::string_view name, Ints missing) const;
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t missing) const;
  bool flag(std::string_view name, bool missing = false) const;
  std::string word(std::string_view name, std::string missing) const;  // of #stablehlo<… WORD>
  std::string text(std::string_view name) const;                       // a string or a symbol
  double number(std::string_view name, double missing) const;
  const MlirAttr& attr(std::string_view name) const;
  const MlirRegion& region(size_t i) const;
  // The operand's integers, known at import. Otherwise throws NeedsParameter for the parameter that
  // it depends on; `assumed`: its value if none is given.
  Ints known_ints(size_t i, int64_t assumed = 1) const;
  std::optional<Literal> known(Instr* value) const;
  std::vector<std::string> precision() const;
  void want_operands(size_t least, size_t most) const;
};

using ShloHandler = void (*)(ShloOp& op);
struct ShloEntry {
  std::string_view name;
  ShloHandler handler;
  size_t least = 0, most = SIZE_MAX;  // operands
  // If quantised operands and results have one scale, the stored integers are moved unchanged.
  bool moves = false;
};

class StablehloImporter {
 public:
  StablehloImporter(const MlirModule& module, const Options& options,
                    const std::map<int64_t, Literal>& fixed);
  Imported run();
  const MlirOp& entry_function() const;

  const MlirModule& source() const { return source_; }
  const Options& options() const { return options_; }
  hlo::Module& module() { return *module_; }
  const MlirType& type_of(MlirValue value) const {
    return source_.values[static_cast<size_t>(value)];
  }

  // Translates a block's operations except its terminator, whose operands it returns.
  Instrs block(const MlirBlock& block, Frame& frame);
  void operation(const MlirOp& op, Frame& frame);
  Instr* value(MlirValue value, const Frame& frame) const;
  // Inlines a function.
  Instrs call(std::string_view name, const Instrs& arguments, Frame& frame);
  const MlirOp& function(std::string_view name) const;
  // A region as a function of scalars (or of whole values, of `parameters`). Outer values must be
  // constants.
  hlo::Computation* scalar_region(const ShloOp& op, const MlirRegion& region,
                                  const std::vector<Shape>& parameters);
  // A block as a computation with one tuple parameter: `arguments` of these shapes followed by
  // `captured`. The result is a tuple of the block's results and, if `pass_on`, the captured
  // values; or, if `plain_result`, its single result.
  hlo::Computation* tuple_region(const MlirBlock& block, const std::vector<Shape>& arguments,
                                 const Instrs& captured, const std::vector<MlirValue>& names,
                                 const Frame& around, bool pass_on, bool plain_result);
  // Outer values that a region uses.
  std::vector<MlirValue> captures_of(const MlirRegion& region) const;
  // Constants are copied into a region: they need not be passed in.
  static bool is_copied(const Instr* instr);
  static Instr* copy_constant(const Instr* instr, hlo::Builder& builder);

  FoldBudget& fold_budget() { return fold_budget_; }
  void assert_that(ShloOp& op, Assertion assertion, Instr* got, Instr* want);
  std::map<std::string, Instrs>& probes() { return probes_; }
  void note(std::string text) { result_.notes.push_back(std::move(text)); }
  int64_t parameter_of(const Instr* value) const;  // of the entry, that it depends on; -1: none

 private:
  Shape parameter_shape(const MlirType& type, int64_t number);
  void add_parameters(const MlirOp& main, Frame& frame);
  void finish(Instrs results);
  void add_aliases(const MlirOp& main);
  void translate(const MlirOp& op, Frame& frame);
  void check_result(const ShloOp& op, size_t i) const;
  std::string location_of(const MlirOp& op) const;

  const MlirModule& source_;
  const Options& options_;
  const std::map<int64_t, Literal>& fixed_;  // parameters with known values
  std::unique_ptr<hlo::Module> module_;
  Imported result_;
  FoldBudget fold_budget_;
  std::unordered_map<std::string_view, const MlirOp*> functions_;
  std::unordered_map<const Instr*, int64_t> parameter_numbers_;
  std::vector<std::pair<Assertion, std::pair<Instr*, Instr*>>> asserted_;
  std::map<std::string, Instrs> probes_;  // values by name of the probe
  std::unordered_map<std::string_view, std::string_view> locations_;
  int64_t translated_ = 0;
  int depth_ = 0;
};

bool is_terminator(const MlirOp& op);
// Null: unknown operation.
const ShloEntry* find_shlo(std::string_view name);

// For quantised values (stablehlo_quantize.cc).
bool has_quantized(const ShloOp& op);
void translate_quantized(ShloOp& op, const ShloEntry& entry);

}  // namespace heddle::import
