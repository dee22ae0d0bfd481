// Reading and writing .npy and .npz, by the conventions of docs/CLI.md "Names and npz files".
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"
#include "tensor/vocabulary.h"

namespace heddle::tensor {

using NamedLiterals = std::vector<std::pair<std::string, Literal>>;  // in file order

// Types that numpy lacks are read as `V2`/`V1` raw bytes; convert them by as_type. Strings (numpy's
// <U) are errors unless `texts` (`text`) is given to take their names: then they are u32 arrays
// with one more dimension, the code points of each.
Result<Literal> read_npy(const std::string& path, bool* text = nullptr);
Status write_npy(const std::string& path, const Literal& literal);
Result<NamedLiterals> read_npz(const std::string& path, std::set<std::string>* texts = nullptr);
Status write_npz(const std::string& path, const NamedLiterals& literals,
                 const std::set<std::string>& texts = {});  // atomic rename
// Converts such arrays of strings to ids, and back.
Literal ids_of_texts(const Literal& points, const std::function<uint32_t(const std::string&)>& id);
Result<Literal> texts_of_ids(const Literal& ids, const std::function<std::string(uint32_t)>& text);

// A raw-bytes literal (u8 or u16 as read from V1/V2) reinterpreted as `type` of the same width;
// integers and floats convert only to themselves. Error: what was got and wanted.
Result<Literal> as_type(const Literal& literal, Type type);

// "2x2xf32=1 2 3 4", "f32=1", "4xs32=0" (one value fills): the literal form of --input.
Result<Literal> parse_literal_spec(const std::string& spec);

}  // namespace heddle::tensor
