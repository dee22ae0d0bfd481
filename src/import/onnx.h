// import: turns model files into hlo::Module. Read this header first.
//
// ONNX: opsets 1 to 28 of the domain ai.onnx. Shapes are static after import: every dynamic
// dimension is bound (Options), shape arithmetic is folded, function-like operators (Softmax,
// LayerNormalization, Gelu, ...) become HLO primitives in their numerically safe form. Weights are
// views of the mapped file wherever their encoding allows it.
//
// Errors are the user's: damaged files, unsupported operators (all of them at once, before any
// work), wrong shapes. They name the node and the value. No input crashes, hangs or allocates
// beyond Options' budgets. Thread safety: the functions share nothing.
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
  // --dim NAME=N: binds every dimension of that name. What is left unbound becomes 1, with a note.
  std::map<std::string, int64_t> dims;
  // --shape NAME=1x3x224x224: all dimensions of a model input.
  std::map<std::string, std::vector<int64_t>> shapes;
  // The same, of what these leave open.
  std::map<std::string, std::vector<int64_t>> open_shapes;
  // Model inputs whose values are fixed: they become constants and are no parameters. For inputs
  // that give shapes, axes and the like, which must be known at import.
  std::map<std::string, tensor::Literal> values;
  // Values that inputs are going to have. One is used where an operator cannot do without (a shape
  // that depends on it): that input becomes a constant and is no parameter (Imported::bound).
  // Elements of sequences are x#0, x#1, ...; of an optional without a value there is none.
  std::map<std::string, tensor::Literal> hints;
  // Where a shape depends on a value that is computed from inputs: not an error, but the graph that
  // computes that value (Imported::undecided). It is imported again with the value in `decided`.
  bool stages = false;
  std::map<std::string, tensor::Literal> decided;
  // Counts that data decides (NonZero) and that are never above this: the graph is for the most
  // that there can be, and says how much is there (heddle.first_rows in hlo/symbol.h,
  // Imported::counts). Without masks (opt/mask_padding) it is not right.
  int64_t max_count = 0;
  // Counts without a bound of their own (how long a Range is) are open as well, where this is not
  // 0: the graph is for so many, and not right for more (Imported::guessed).
  int64_t guessed_count = 0;
  std::set<std::string> exact_counts;  // keys of those that are decided all the same
  int64_t less_counts = 0;             // the graph for so many fewer: to see what depends on it
  // ONNX: parameters and no results, Imported::later_outputs instead.
  bool ports_only = false;
  // Values that earlier stages have computed, as further results (Imported::output_names): they
  // are parameters of these names, behind the inputs, where the graph reads them.
  std::map<std::string, tensor::Shape> carried;
  // Sequences as inputs: the shapes of their elements, which become inputs name#0, name#1, ...
  std::map<std::string, std::vector<tensor::Shape>> sequences;
  std::set<std::string> absent;  // optional inputs that get no value
  // Of `shapes`: those that are not asked for but those of values, for messages.
  std::set<std::string> shapes_of_values;
  // --module NAME: which one of a text file of several; empty: there must be one only.
  // Of strings in values above; null: there are none, and the model gets one of its own.
  std::shared_ptr<tensor::Vocabulary> vocabulary;
  std::string module_name;
  std::string kv_cache;           // --kv-cache: "bf16", "int8" (kv_cache.h); empty: as they are
  bool random_constants = false;  // constants written as {...} get invented values, with a note
  int64_t max_nodes = 2'000'000;  // ONNX nodes, inlined bodies included
  int64_t max_value_elems = int64_t{1} << 29;      // one computed value, or input
  int64_t max_constant_bytes = int64_t{64} << 30;  // all initialisers together
  int64_t max_fold_elems = 1 << 14;                // the largest value of shape arithmetic
  // Extents may be others another time: the graph must not depend on them where it need not.
  bool same_for_all_extents = false;
  // Not null: where an import fails for want of operators (ErrorKind::unsupported), gets all of
  // them.
  std::shared_ptr<std::vector<Unsupported>> unsupported;
};

// What a model file says of itself; empty and 0 where its format has no such thing.
struct Origin {
  std::string producer, producer_version, domain, description, graph, graph_description;
  int64_t ir_version = 0, version = 0;
  std::vector<std::pair<std::string, int64_t>> opsets;        // domain ("ai.onnx"), version
  std::vector<std::pair<std::string, std::string>> metadata;  // in the file's order
};

// An input whose value decides a shape, and has become a constant for that.
struct BoundInput {
  std::string name;
  int64_t place = 0;  // among all inputs, had none been bound
  tensor::Shape shape;
  std::string why;  // what would have been the error
};

// A dimension of an output that follows a count which the graph computes: `times` elements to one.
struct OpenOutput {
  int64_t output = 0, dimension = 0, times = 1;
  int64_t extent = 0;  // the output that is the count, s32[]; they stand behind all others
};

// A count that is right up to `most`; `extent` is the output that it is, s32[].
struct GuessedCount {
  int64_t extent = 0, most = 0;
};

struct Imported {
  // ONNX: the parameters are the model's inputs in order (initialisers are constants), the root is
  // a tuple of its outputs and of the hidden ones of `index_checks`. HLO text: as written.
  std::unique_ptr<hlo::Module> module;
  // ONNX: value names. HLO: arg<n> and out<n> by CLI.md, one a leaf of the entry's parameters and
  // of its root.
  std::vector<std::string> input_names, output_names;
  // A second accepted name of each input: the HLO parameter's own ("p", "p.0.1"); empty for ONNX.
  std::vector<std::string> input_aliases;
  // ONNX: what the model calls the dimensions of its inputs and outputs, by name of the value; ""
  // where it has a number or nothing.
  std::map<std::string, std::vector<std::string>> input_dims, output_dims;
  // ONNX: which values are positions of what. The graph itself clamps them (gather) or skips them
  // (scatter), as HLO does.
  std::vector<tensor::IndexCheck> index_checks;
  std::map<std::string, std::string> counts;  // by the call's name: the key
  std::set<std::string> guessed;              // keys of those, open or asked for, without a bound
  std::vector<OpenOutput> open_outputs;       // made by who opens the counts
  std::vector<GuessedCount> guessed_counts;   // likewise: outputs to be looked at behind a run
  std::vector<BoundInput> bound;              // by Options::hints, in order of their places
  // Options::ports_only: names and types of outputs that are tensors.
  std::vector<std::pair<std::string, tensor::Type>> later_outputs;
  // Options::stages: not empty, the module's first result is this value, a computed one that a
  // shape depends on (`why` says which), and the others are what the rest of the graph reads.
  std::string undecided, undecided_why;
  // Inputs and outputs that are strings, by name: u32 tensors of ids in `vocabulary`.
  std::set<std::string> texts;
  std::shared_ptr<tensor::Vocabulary> vocabulary;
  std::vector<std::string> notes;  // "dimension 'batch' bound to 1 (--dim batch=N)"
  // Dynamic dimensions that nothing bound, with the extent they got; one without a name is
  // "input[0]".
  std::vector<std::pair<std::string, int64_t>> unbound;
  std::vector<std::string> files;  // paths of external data
  Origin origin;
  // StableHLO tests: what is to hold of outputs (the last ones, named check0.got, check0.want, …).
  std::vector<Assertion> assertions;
};

// External tensor data is looked for beside the model and nowhere else.
Result<Imported> import_onnx(const std::string& path, const Options& options = {});
// `directory`: where external data lies; empty: there must be none. `bytes` is copied.
Result<Imported> import_onnx_bytes(std::string_view bytes, const std::string& directory,
                                   const Options& options = {});
Result<Imported> import_hlo_text(std::string_view text, const Options& options = {});
// --module NAME; an empty name: there must be one only. Errors (user): none, or several of the
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
Format sniff(std::string_view bytes);     // all of them: a text may begin with long comments
bool is_comments(std::string_view text);  // and nothing else, in either text format
bool is_stablehlo(Format format);         // text or bytecode
std::string_view format_name(Format format);

class MappedFile;
struct ModelFile {
  std::shared_ptr<const MappedFile> file;
  Format format = Format::unknown;
};
// Every command opens models by this. Errors (user): those of MappedFile::open; unknown content.
Result<ModelFile> open_model_file(const std::string& path);

// Any model of a kind that can be imported, told by its content; the kinds that cannot (yet) are
// errors that say so.
Result<Imported> import_model(const std::string& path, const Options& options = {});

}  // namespace heddle::import
