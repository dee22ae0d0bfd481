// import: turns model files into hlo::Module. Read this header first.
//
// ONNX: opsets 1 to 28 of the domain ai.onnx. Shapes are static after import: every dynamic
// dimension is bound (Options), shape arithmetic is folded, function-like operators (Softmax,
// LayerNormalization, Gelu, ...) become HLO primitives in their numerically safe form. Weights are
// views of the mapped file if their encoding allows it.
//
// Errors are the user's: damaged files, unsupported operators (all of them at once, before any
// work), wrong shapes. They name the node and the value. No input crashes, hangs or allocates
// beyond Options' budgets. Thread safety: the functions share no state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "import/assertion.h"
#include "tensor/index_check.h"
#include "tensor/literal.h"
#include "tensor/vocabulary.h"

namespace heddle::hlo {
class Module;
}

namespace heddle::import {

struct Unsupported;  // onnx_support.h

struct Options {
  // --dim NAME=N: binds every dimension of that name. Unbound dimensions become 1, with a note.
  std::map<std::string, int64_t> dims;
  // --shape NAME=1x3x224x224: all dimensions of a model input.
  std::map<std::string, std::vector<int64_t>> shapes;
  // The same, with lower priority: for dimensions that the above leave unbound.
  std::map<std::string, std::vector<int64_t>> open_shapes;
  // Model inputs with fixed values: they become constants instead of parameters. For inputs such as
  // shapes and axes, which must be known at import.
  std::map<std::string, tensor::Literal> values;
  // Values that inputs will have. A hint is used only if an operator requires a known value (a
  // shape that depends on it): that input becomes a constant instead of a parameter
  // (Imported::bound). Elements of sequences are x#0, x#1, ...; an optional without a value has
  // none.
  std::map<std::string, tensor::Literal> hints;
  // If a shape depends on a value computed from inputs, return the graph that computes that value
  // (Imported::undecided) instead of an error. The model is then imported again with the value in
  // `decided`.
  bool stages = false;
  std::map<std::string, tensor::Literal> decided;
  // Data-dependent counts (NonZero) of at most this bound stay open: the graph is built for the
  // maximum, and computes the actual count (heddle.first_rows in hlo/symbol.h, Imported::counts).
  // It is correct only with masks (opt/mask_padding).
  int64_t max_count = 0;
  // If not 0, counts without a known bound (such as the length of a Range) stay open as well: the
  // graph is built for this many, and is not correct for more (Imported::guessed).
  int64_t guessed_count = 0;
  std::set<std::string> exact_counts;  // keys of counts that are decided exactly nevertheless
  bool no_open_counts = false;         // all of them are
  int64_t less_counts = 0;             // makes open counts smaller, to see what depends on them
  // ONNX: import parameters but no results; see Imported::later_outputs.
  bool ports_only = false;
  // Values that earlier stages have computed, as further results (Imported::output_names): where
  // the graph reads them they become parameters of these names, after the inputs.
  std::map<std::string, tensor::Shape> carried;
  // Sequences as inputs: the shapes of their elements, which become inputs name#0, name#1, ...
  std::map<std::string, std::vector<tensor::Shape>> sequences;
  std::set<std::string> absent;  // optional inputs without a value
  // Names in `shapes` that come from values rather than from the user, for messages.
  std::set<std::string> shapes_of_values;
  // Vocabulary of the strings in the values above; null: none yet, the model gets its own.
  // `module_name`: --module NAME, for text files with several modules; empty: there must be only
  // one.
  std::shared_ptr<tensor::Vocabulary> vocabulary;
  std::string module_name;
  std::string kv_cache;           // --kv-cache: "bf16", "int8" (kv_cache.h); empty: unchanged
  bool random_constants = false;  // constants written as {...} get invented values, with a note
  int64_t max_nodes = 2'000'000;  // ONNX nodes, inlined bodies included
  int64_t max_value_elems = int64_t{1} << 29;      // one computed value, or input
  int64_t max_constant_bytes = int64_t{64} << 30;  // all initialisers together
  int64_t max_fold_elems = 1 << 14;                // the largest value of shape arithmetic
  // Dimensions of inputs that are at a bound, by name: the graph must not depend on their extents
  // unnecessarily. Extents at other bounds are in `dims`.
  std::map<std::string, int64_t> bounded;
  // Extents of results that are computed from those of inputs (an image that is resized by a
  // factor), by name: each has an input of its own behind the model's, s32[extent], of which the
  // elements are the positions along it, from 0 on. `find_extents`: instead of the graph the one
  // that computes these; its results, scalars of s64, have their names.
  std::map<std::string, int64_t> named_extents;
  bool find_extents = false;
  // What is made for a computed extent (zeros, positions, pieces) has rows of which the graph says
  // how many are there, also where no extent has a name.
  bool open_extents = false;
  // If not null: gets all unsupported operators if an import fails because of them
  // (ErrorKind::unsupported).
  std::shared_ptr<std::vector<Unsupported>> unsupported;
};

// The model file's description of itself; empty and 0 if its format has none.
struct Origin {
  std::string producer, producer_version, domain, description, graph, graph_description;
  int64_t ir_version = 0, version = 0;
  std::vector<std::pair<std::string, int64_t>> opsets;        // domain ("ai.onnx"), version
  std::vector<std::pair<std::string, std::string>> metadata;  // in the file's order
};

// An input that became a constant because its value determines a shape.
struct BoundInput {
  std::string name;
  int64_t place = 0;  // position among all inputs, bound ones included
  tensor::Shape shape;
  std::string why;  // the error that binding it avoided
};

// A dimension of an output that follows a computed count: `times` elements per unit of the count.
struct OpenOutput {
  int64_t output = 0, dimension = 0, times = 1;
  int64_t extent = 0;  // the output that holds the count, s32[]; these come after all others
  int64_t bound = 0;   // of the dimension
};

// A count that is correct up to `most`; `extent` is the output that holds it, s32[].
struct GuessedCount {
  int64_t extent = 0, most = 0;
};

struct Imported {
  // ONNX: the parameters are the model's inputs in order (initialisers are constants), the root is
  // a tuple of its outputs and of the hidden ones of `index_checks`. HLO text: as written.
  std::unique_ptr<hlo::Module> module;
  // ONNX: value names. HLO: arg<n> and out<n> as in CLI.md, one per leaf of the entry's parameters
  // and of its root.
  std::vector<std::string> input_names, output_names;
  // A second accepted name of each input: the HLO parameter's own ("p", "p.0.1"); empty for ONNX.
  std::vector<std::string> input_aliases;
  // ONNX: the model's names of the dimensions of its inputs and outputs, by name of the value; ""
  // for a number or none.
  std::map<std::string, std::vector<std::string>> input_dims, output_dims;
  // ONNX: which values are positions, and their ranges. The graph itself clamps them (gather) or
  // skips them (scatter), as HLO does.
  std::vector<tensor::IndexCheck> index_checks;
  std::map<std::string, std::string> counts;  // by name of the call: the key
  std::set<std::string> guessed;              // keys of counts without a bound
  // What numbers of counted rows, known for the bound only, say of the graph: calls, by name, of
  // which one of each set must have rows, else it is not right; why it is right for the bound only,
  // or empty; and dimensions, of instructions by name, that are right only if they follow a count.
  std::set<std::set<std::string>> needed_rows;
  std::string not_open;
  std::vector<std::pair<std::string, int64_t>> counted_dims;
  std::vector<OpenOutput> open_outputs;  // filled by api/counts.h
  // Likewise, outputs to check after a run; not all of a set of those below may be 0.
  std::vector<GuessedCount> guessed_counts;
  std::vector<std::vector<int64_t>> needed_counts;
  std::vector<BoundInput> bound;  // by Options::hints, in order of position
  // Options::ports_only: names and types of outputs that are tensors.
  std::vector<std::pair<std::string, tensor::Type>> later_outputs;
  // Options::stages: if not empty, the module's first result is this value, a computed one that a
  // shape depends on (`why` names the shape), and the others are the values that the rest of the
  // graph reads.
  std::string undecided, undecided_why;
  // Inputs and outputs that are strings, by name: u32 tensors of ids in `vocabulary`.
  std::set<std::string> texts;
  std::shared_ptr<tensor::Vocabulary> vocabulary;
  std::vector<std::string> notes;  // "dimension 'batch' bound to 1 (--dim batch=N)"
  // Dynamic dimensions that were not bound, with the extent they got; one without a name is
  // "input[0]".
  std::vector<std::pair<std::string, int64_t>> unbound;
  std::vector<std::string> files;  // paths of external data
  Origin origin;
  // StableHLO tests: expectations about outputs (the last ones, named check0.got, check0.want, …).
  std::vector<Assertion> assertions;
};

// External tensor data is only looked for beside the model.
Result<Imported> import_onnx(const std::string& path, const Options& options = {});
// `directory`: of external data; empty: there must be none. `bytes` is copied.
Result<Imported> import_onnx_bytes(std::string_view bytes, const std::string& directory,
                                   const Options& options = {});
Result<Imported> import_hlo_text(std::string_view text, const Options& options = {});
// --module NAME; an empty name: there must be only one. Errors (user): none, or several with this
// name.
Result<std::unique_ptr<hlo::Module>> choose_module(
    std::vector<std::unique_ptr<hlo::Module>> modules, const std::string& name);

// A model's kind by its content (CLI.md: never by its name).
enum class Format {
  onnx,
  hlo_text,
  stablehlo_text,
  stablehlo_bytecode,
  hlo_proto,
  program,
  unknown
};
Format sniff(std::string_view bytes);     // of the whole file: a text may begin with long comments
bool is_comments(std::string_view text);  // only comments, in either text format
bool is_stablehlo(Format format);         // text or bytecode
std::string_view format_name(Format format);

class MappedFile;
struct ModelFile {
  std::shared_ptr<const MappedFile> file;
  Format format = Format::unknown;
};
// All commands open models through this. Errors (user): those of MappedFile::open; unknown content.
Result<ModelFile> open_model_file(const std::string& path);

// Imports any supported kind of model, recognised by its content; other kinds give an error that
// names them.
Result<Imported> import_model(const std::string& path, const Options& options = {});

}  // namespace heddle::import
