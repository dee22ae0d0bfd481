#include "edited_model.h"

#include <cstdio>
#include <fstream>

#include "base/hash.h"
#include "values.h"

namespace heddle::tools {

namespace {

Status write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return machine_error("cannot write {}", path);
  return {};
}

}  // namespace

Result<EditedFiles> edited_files(const import::OnnxEdit& model, const std::string& path,
                                 bool is_apart) {
  EditedFiles files;
  files.apart.name = path.substr(path.rfind('/') + 1) + ".data";
  HEDDLE_ASSIGN_OR_RETURN(files.model, model.write(is_apart ? &files.apart : nullptr));
  return files;
}

Result<EditedModel> compile_edited(const import::OnnxEdit& model, OpenChoices open,
                                   tensor::NamedLiterals extents, const std::string& path,
                                   bool is_apart) {
  struct Remove {
    const std::string& path;
    ~Remove() {
      std::remove(path.c_str());
      std::remove((path + ".data").c_str());
    }
  } const remove{path};
  EditedModel made;
  {
    HEDDLE_ASSIGN_OR_RETURN(const EditedFiles files, edited_files(model, path, is_apart));
    HEDDLE_RETURN_IF_ERROR(write_file(path, files.model));
    if (!files.apart.bytes.empty())
      HEDDLE_RETURN_IF_ERROR(write_file(path + ".data", files.apart.bytes));
    made.bytes = files.model.size() + files.apart.bytes.size();
    made.hash = hash64(files.apart.bytes, hash64(files.model));
  }
  open.model = path;
  HEDDLE_ASSIGN_OR_RETURN(made.model, open.open(extents, InputChoices()));
  const CompileChoices compile;
  HEDDLE_ASSIGN_OR_RETURN(made.program, compile.compile(made.model.get(), false));
  return made;
}

}  // namespace heddle::tools
