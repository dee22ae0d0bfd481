// The options of commands that open and compile a model, and what they mean to heddle.h.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handles.h"
#include "tensor/npz.h"

namespace heddle::tools {

class CommandLine;
class FileUse;
struct InputChoices;

// MODEL, --dim, --shape, --fix, --module.
struct OpenChoices {
  std::string model;
  std::vector<std::string> dims, shapes, fixed;
  std::string module;
  bool random_constants = false;
  std::string kv_cache;

  void declare(CommandLine& line);
  // `given`: values that will be bound. Their shapes bind dynamic dimensions; those that --fix
  // names become constants and leave the list. `inputs`: where they come from, for messages.
  // Error (user) also where a file of the model, as external data, is an output of the command.
  Result<ModelHandle> open(tensor::NamedLiterals& given, const InputChoices& inputs) const;
  Result<ModelHandle> open() const;
  // For commands that want values only where shapes depend on them.
  Result<ModelHandle> open(const InputChoices& inputs) const;
  // Of the options those that were given, as words of a command.
  std::vector<std::string> words() const;

 private:
  std::shared_ptr<FileUse> files_;
};

// Dynamic dimensions that nothing bound, with the extents that they got.
using Unbound = std::vector<std::pair<std::string, int64_t>>;
Unbound unbound_of(const heddle_model* model);

// --device, --target, --level, --fuse, … (a member for each row of compiler/options.def),
// --stop-after.
struct CompileChoices {
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) std::string field = plain;
#define HEDDLE_TEXT(part, Type, field, plain, value, help) std::string field = plain;
#define HEDDLE_NUMBER(part, Type, field, ...) std::optional<int64_t> field;
#define HEDDLE_FOLDER(part, field, help) std::string field;
#define HEDDLE_FLAG(part, field) bool field = false;
#include "compiler/options.def"
  std::string stop_after;

  // `but`: a field that is not declared, as its option means something else here.
  void declare(CommandLine& line, std::string_view but = "");
  // The texts inside point into this object.
  Result<heddle_compile_options> options() const;
  Result<ProgramHandle> compile(heddle_model* model, bool consume) const;
  // Of these the ones that were given, as words of a command.
  std::vector<std::string> words() const;
  // With --stop-after: prints that point and says so; the command is then done.
  Result<bool> stopped(const heddle_model* model) const;
};

// "NAME=3": NAME and a number that is not negative; "NAME=3<=8", "NAME=<=8": with a bound.
// "NAME=1x3x4": NAME and its dimensions.
struct DimChoice {
  std::string name;
  std::optional<int64_t> size, bound;  // one of them at least
};
std::optional<int64_t> parse_number(std::string_view text);  // one that is not negative
Result<DimChoice> parse_dim(const std::string& text);
Result<std::pair<std::string, std::vector<int64_t>>> parse_shape_choice(const std::string& text);

}  // namespace heddle::tools
