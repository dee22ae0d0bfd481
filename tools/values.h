// Values of inputs and outputs on the command line: --inputs, --input, --seed, --outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "handles.h"
#include "tensor/npz.h"

namespace heddle::tools {

class CommandLine;
class OutputFile;

// One literal an input, in the model's order.
struct InputValues {
  std::vector<tensor::Literal> values;
  std::vector<std::string> random;  // names of those that nobody gave
  std::string description;          // "random, seed 0: …", "as given", both
  bool all_random = false;
};

struct InputChoices {
  std::string file;                // --inputs
  std::vector<std::string> specs;  // --input
  std::optional<int64_t> seed;
  bool random_rest = false;

  void declare(CommandLine& line);
  // Those that say values alone, for commands that run nothing: values decide shapes.
  void declare_values(CommandLine& line);
  uint64_t seed_or_default() const { return static_cast<uint64_t>(seed.value_or(0)); }
  // What was given, by name; those of --input win. Errors (user): unreadable; nothing in the file;
  // a name given twice.
  Result<tensor::NamedLiterals> read() const;
  // Names of those that are strings: arrays of code points (tensor/npz.h).
  const std::set<std::string>& texts() const { return texts_; }
  // "--input x", "--inputs in.npz, entry x".
  std::string source_of(const std::string& name) const;
  // The error of opening a model, with such a source wherever it speaks of the value of an input.
  Error with_sources(Error error, const tensor::NamedLiterals& given) const;
  // Without any given all are random. Errors (user): a name that is no input, a type or a shape
  // that is not the input's; some given and others missing, without --random-rest.
  Result<InputValues> values(const heddle_model* model, const tensor::NamedLiterals& given) const;

 private:
  using Chosen = std::vector<std::optional<tensor::Literal>>;
  Result<Chosen> choose(const heddle_model* model, const tensor::NamedLiterals& given) const;
  Status fill(const heddle_model* model, Chosen chosen, InputValues& result) const;
  mutable std::set<std::string> texts_;  // of the last read()
};

// A literal of a port: zeros. Error: no memory.
Result<tensor::Literal> literal_of(const heddle_port& port);
std::string shape_text(const heddle_port& port);  // "f32[2,3]"

// Runs a program on the inputs once; outputs in its order.
Status bind(heddle_context* context, std::vector<tensor::Literal>& inputs,
            std::vector<tensor::Literal>& outputs);
Result<std::vector<tensor::Literal>> make_outputs(const heddle_program* program);
Result<std::vector<tensor::Literal>> run_once(heddle_program* program,
                                              std::vector<tensor::Literal>& inputs);
// With their names, but for tokens, which have no value.
Status write_outputs(const OutputFile& file, const heddle_model* model,
                     const std::vector<tensor::Literal>& outputs);

}  // namespace heddle::tools
