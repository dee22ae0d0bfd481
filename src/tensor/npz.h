// Reading and writing .npy and .npz, by the conventions of CLI.md "Names and npz files".
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"

namespace heddle::tensor {

using NamedLiterals = std::vector<std::pair<std::string, Literal>>;  // in file order

// Types that numpy lacks are read as `V2`/`V1` raw bytes; `want`, where given, says what they are.
Result<Literal> read_npy(const std::string& path);
Status write_npy(const std::string& path, const Literal& literal);
Result<NamedLiterals> read_npz(const std::string& path);
Status write_npz(const std::string& path, const NamedLiterals& literals);  // atomic rename

// A raw-bytes literal (u8 or u16 as read from V1/V2) seen as `type` of the same width; integers
// and floats convert only to themselves. Error: what was got and wanted.
Result<Literal> as_type(const Literal& literal, Type type);

// "2x2xf32=1 2 3 4", "f32=1", "4xs32=0" (one value fills): the literal form of --input.
Result<Literal> parse_literal_spec(const std::string& spec);

}  // namespace heddle::tensor
