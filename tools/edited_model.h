// A changed ONNX model as files, and compiled from them.
#pragma once

#include <cstdint>
#include <string>

#include "import/onnx_edit.h"
#include "model_options.h"

namespace heddle::tools {

struct EditedFiles {
  std::string model;
  import::OnnxEdit::Apart apart;  // beside it, as PATH.data; empty: all is in the model
};
// What is written for a model at `path`.
Result<EditedFiles> edited_files(const import::OnnxEdit& model, const std::string& path,
                                 bool is_apart);

struct EditedModel {
  ModelHandle model;
  ProgramHandle program;
  size_t bytes = 0;   // of its files
  uint64_t hash = 0;  // of what they hold
};
// `path`: where the files lie while it is opened; they are removed again, and what was mapped of
// them stays. `extents`: values whose shapes bind dynamic dimensions.
Result<EditedModel> compile_edited(const import::OnnxEdit& model, OpenChoices open,
                                   tensor::NamedLiterals extents, const std::string& path,
                                   bool is_apart);

}  // namespace heddle::tools
