// Strings and messages inside a protocol buffers message.
#pragma once

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>
#include <string_view>

#include "import/failure.h"

namespace heddle::import {

// The bytes of a field, which must be length-delimited. protozero keeps 32 bits of a length; a
// longer one must not be truncated silently.
inline std::string_view delimited_bytes(protozero::pbf_reader& in) {
  const protozero::data_view rest = in.data();
  const char* at = rest.data();
  const char* const end = at + rest.size();
  const uint64_t length = protozero::decode_varint(&at, end);
  if (length > static_cast<uint64_t>(end - at)) throw protozero::end_of_buffer_exception{};
  const protozero::data_view view = in.get_view();
  return {view.data(), view.size()};
}

// Calls read(); protozero's exceptions become a Failure. `what`: "an ONNX model".
template <typename Read>
auto decoded(std::string_view bytes, const char* what, Read read) {
  if (bytes.size() > INT32_MAX)
    fail("{} bytes; a protobuf message has at most 2 GiB: keep the weights in external data",
         bytes.size());
  try {
    return read();
  } catch (const protozero::end_of_buffer_exception&) {
    fail("truncated: a field goes past the end of its message (not {}, or damaged)", what);
  } catch (const protozero::varint_too_long_exception&) {
    fail("a number of more than 10 bytes (not {}, or damaged)", what);
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    fail("a field of unknown wire type (not {}, or damaged)", what);
  } catch (const protozero::exception& error) {
    fail("{} (not {}, or damaged)", error.what(), what);
  }
}

}  // namespace heddle::import
