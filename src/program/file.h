// The file format of a program (.heddle): a header readable without loading, sections with offsets,
// version, checksum. Sections are 4 KiB-aligned so that constants are mapped, not read.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "program/program.h"
#include "program/saved.h"

namespace heddle::program {

// The program's version plus three for additions by the file: contracts of the code, extents that
// are derived from others, and quotients of them.
inline constexpr int kFileVersion = Program::kVersion + 3;

struct FileHeader {
  int version = 0;
  std::string name, target_name, features, build_id;
  std::string dimensions;  // dimensions_text(); empty if all extents are constant
  int64_t programs = 0;    // one for each bucket of dimensions
  int64_t constant_bytes = 0, object_bytes = 0, file_bytes = 0;
};

// Atomic (temporary file and rename). Errors: machine.
Status save(const Saved& saved, const std::string& path);
Status save(const Program& program, const std::string& path);
// Truncated, flipped, foreign or newer files are user errors with a reason.
Result<Saved> load_saved(const std::string& path);
// The same for a file in memory, which is copied; `name` is for messages.
Result<Saved> load_saved(const std::string& name, std::string_view bytes);
// For a file with one program.
Result<Program> load(const std::string& path);
Result<FileHeader> read_header(const std::string& path);

}  // namespace heddle::program
