#include "tensor/npz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>

#include "tensor/npy_header.h"
#include "tensor/utf8.h"

namespace heddle::tensor {
namespace {

// Deflate cannot expand by more than 1032: an entry that claims more is corrupt.
constexpr uint64_t kMaxDeflateRatio = 1032;
constexpr zip_uint16_t kDosDate = 0x21;  // 1980-01-01: files of equal content are equal

// Copies the elements from first-dimension-fastest order into row-major order.
void transpose_fortran(const Literal& from, Literal& to) {
  std::vector<int64_t> dims = from.shape().extents();
  auto rank = static_cast<int64_t>(dims.size());
  auto bytes = static_cast<size_t>(type_bytes(from.type()));
  const auto* source = static_cast<const char*>(from.data());
  auto* target = static_cast<char*>(to.mutable_data());
  std::vector<int64_t> strides(dims.size(), 1);
  for (int64_t d = 1; d < rank; ++d) strides[d] = strides[d - 1] * dims[d - 1];
  std::vector<int64_t> index(dims.size(), 0);
  int64_t at = 0;
  for (int64_t i = 0; i < to.elems(); ++i) {
    std::memcpy(target + i * static_cast<int64_t>(bytes), source + at * static_cast<int64_t>(bytes),
                bytes);
    for (int64_t d = rank; d-- > 0;) {
      at += strides[d];
      if (++index[d] < dims[d]) break;
      at -= strides[d] * dims[d];
      index[d] = 0;
    }
  }
}

// Reads exactly `bytes` bytes of the current entry or file.
using Reader = std::function<Status(void* to, int64_t bytes)>;

// `total_bytes`: the claimed size of the data; nothing larger is allocated. `text`: set if it holds
// strings; null: strings are errors.
Result<Literal> read_array(const Reader& read, int64_t total_bytes, bool* text) {
  std::string header_text(kNpyPrefixBytes, '\0');
  if (total_bytes < kNpyPrefixBytes)
    return user_error("{} bytes are not an npy array", total_bytes);
  HEDDLE_RETURN_IF_ERROR(read(header_text.data(), kNpyPrefixBytes));
  HEDDLE_ASSIGN_OR_RETURN(int64_t header_bytes, npy_header_bytes(header_text));
  if (header_bytes > total_bytes) {
    return user_error("npy header of {} bytes in {}: damaged?", header_bytes, total_bytes);
  }
  header_text.resize(static_cast<size_t>(header_bytes));
  HEDDLE_RETURN_IF_ERROR(
      read(header_text.data() + kNpyPrefixBytes, header_bytes - kNpyPrefixBytes));
  HEDDLE_ASSIGN_OR_RETURN(NpyHeader header, parse_npy_header(header_text));
  if (header.text && text == nullptr)
    return user_error(
        "strings, dtype '<U{}' cannot be read here; wanted bool, int, float or complex",
        header.dims.back());
  if (text != nullptr) *text = header.text;
  if (header.data_bytes != total_bytes - header_bytes) {
    return user_error("{} wants {} bytes of elements, got {}: damaged?",
                      to_string(Shape::array(header.type, header.dims)), header.data_bytes,
                      total_bytes - header_bytes);
  }
  Shape shape = Shape::array(header.type, header.dims);
  HEDDLE_ASSIGN_OR_RETURN(Literal literal, Literal::make(shape));
  HEDDLE_RETURN_IF_ERROR(read(literal.mutable_data(), header.data_bytes));
  if (header.fortran_order && header.dims.size() > 1) {
    HEDDLE_ASSIGN_OR_RETURN(Literal row_major, Literal::make(shape));
    transpose_fortran(literal, row_major);
    literal = std::move(row_major);
  }
  if (header.type == Type::pred) {
    for (uint8_t& value : literal.mutable_values<uint8_t>()) value = value != 0;
  }
  return literal;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// The size of a regular file.
Result<int64_t> file_bytes(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return user_error("{}: cannot be read: {}", path, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return user_error("{}: is not a regular file", path);
  return static_cast<int64_t>(status.st_size);
}

struct DiscardZip {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, DiscardZip>;

struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

std::string zip_message(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

Status check_entry(const zip_stat_t& entry, int64_t archive_bytes) {
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((entry.valid & kNeeded) != kNeeded) return user_error("no sizes in the directory: damaged?");
  if (entry.encryption_method != ZIP_EM_NONE) return user_error("encrypted entries cannot be read");
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE) {
    return user_error("zip method {}: wanted stored or deflated, as np.savez writes",
                      entry.comp_method);
  }
  auto file_size = static_cast<uint64_t>(archive_bytes);
  uint64_t most =
      entry.comp_method == ZIP_CM_STORE
          ? entry.comp_size
          : (entry.comp_size <= file_size ? entry.comp_size * kMaxDeflateRatio + 1024 : 0);
  if (entry.comp_size > file_size || entry.size > most || entry.size > INT64_MAX) {
    return user_error("{} bytes from {} in a file of {}: damaged?", entry.size, entry.comp_size,
                      file_size);
  }
  return {};
}

Result<Literal> read_entry(zip_t* archive, zip_uint64_t index, int64_t size, bool* text) {
  Entry entry(zip_fopen_index(archive, index, 0));
  if (!entry) return user_error("cannot be opened: {}", zip_strerror(archive));
  Reader read = [&entry](void* to, int64_t bytes) -> Status {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      zip_int64_t got = zip_fread(entry.get(), at, static_cast<zip_uint64_t>(bytes));
      if (got <= 0) {
        return user_error("{} bytes are missing: {}", bytes, zip_file_strerror(entry.get()));
      }
      at += got;
      bytes -= got;
    }
    return {};
  };
  HEDDLE_ASSIGN_OR_RETURN(Literal literal, read_array(read, size, text));
  char extra;
  // The checksum is verified on reaching the end.
  if (zip_fread(entry.get(), &extra, 1) != 0) {
    return user_error("damaged: {}", zip_file_strerror(entry.get()));
  }
  return literal;
}

// libzip does not write an archive without entries: this is its end record.
Status write_empty_archive(const std::string& path) {
  constexpr char kEnd[22] = {'P', 'K', 5, 6};
  File file(std::fopen(path.c_str(), "wb"));
  if (file && std::fwrite(kEnd, 1, sizeof(kEnd), file.get()) == sizeof(kEnd)) return {};
  return machine_error("cannot be written: {}", std::strerror(errno));
}

// A name beside `path` that no other process or thread uses.
std::string temporary_name(const std::string& path) {
  static std::atomic<int> count = 0;
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), count++);
}

// Renames the finished file `from` to `to` atomically, also across a power cut.
Status publish(const std::string& from, const std::string& to) {
  int file = ::open(from.c_str(), O_RDONLY);
  bool ok = file >= 0 && ::fsync(file) == 0;
  if (file >= 0) ::close(file);
  if (ok && std::rename(from.c_str(), to.c_str()) == 0) return {};
  std::string reason = std::strerror(errno);
  std::remove(from.c_str());
  return machine_error("{}: cannot be written: {}", to, reason);
}

Status check_names(const NamedLiterals& literals) {
  std::set<std::string> seen;
  for (const auto& [name, literal] : literals) {
    if (name.empty() || name.find('\0') != std::string::npos || name.size() > 0xff00) {
      return user_error("array name of {} bytes: wanted 1 to {}, without NUL", name.size(), 0xff00);
    }
    if (!seen.insert(name).second) return user_error("{}: the name is used twice", name);
    if (!literal.shape().is_array()) {
      return user_error("{}: {} is not an array; write a tuple's leaves", name,
                        to_string(literal.shape()));
    }
  }
  return {};
}

// Adds one array; `header` and the literal must outlive zip_close.
Status add_entry(zip_t* archive, const std::string& name, const std::string& header,
                 const Literal& literal) {
  auto* data = static_cast<zip_uint8_t*>(const_cast<void*>(literal.data()));
  auto* text = reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data()));
  zip_buffer_fragment_t fragments[] = {{text, header.size()},
                                       {data, static_cast<zip_uint64_t>(literal.bytes())}};
  zip_source_t* source =
      zip_source_buffer_fragment(archive, fragments, literal.bytes() > 0 ? 2 : 1, 0);
  if (source == nullptr) return machine_error("{}: {}", name, zip_strerror(archive));
  zip_int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return user_error("{}: cannot be a name in a zip file: {}", name, zip_strerror(archive));
  }
  auto at = static_cast<zip_uint64_t>(index);
  if (zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, at, 0, kDosDate, 0) != 0) {
    return machine_error("{}: {}", name, zip_strerror(archive));
  }
  return {};
}

}  // namespace

Result<Literal> read_npy(const std::string& path, bool* text) {
  HEDDLE_ASSIGN_OR_RETURN(int64_t bytes, file_bytes(path));
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return user_error("{}: cannot be opened: {}", path, std::strerror(errno));
  Reader read = [&file](void* to, int64_t count) -> Status {
    size_t got = std::fread(to, 1, static_cast<size_t>(count), file.get());
    if (static_cast<int64_t>(got) == count) return {};
    return user_error("{} bytes are missing", count - static_cast<int64_t>(got));
  };
  auto literal = read_array(read, bytes, text);
  if (!literal) return error_in(path, literal.error());
  return literal;
}

Status write_npy(const std::string& path, const Literal& literal) {
  if (!literal.shape().is_array()) {
    return user_error("{}: {} is not an array", path, to_string(literal.shape()));
  }
  HEDDLE_ASSIGN_OR_RETURN(std::string header,
                          make_npy_header(literal.type(), literal.shape().extents()));
  std::string temporary = temporary_name(path);
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr)
    return machine_error("{}: cannot be written: {}", path, std::strerror(errno));
  auto bytes = static_cast<size_t>(literal.bytes());
  bool ok = std::fwrite(header.data(), 1, header.size(), file) == header.size() &&
            std::fwrite(literal.data(), 1, bytes, file) == bytes;
  int reason = errno;
  if (std::fclose(file) != 0 && ok) {
    ok = false;
    reason = errno;
  }
  if (!ok) {
    std::remove(temporary.c_str());
    return machine_error("{}: cannot be written: {}", path, std::strerror(reason));
  }
  return publish(temporary, path);
}

Result<NamedLiterals> read_npz(const std::string& path, std::set<std::string>* texts) {
  HEDDLE_ASSIGN_OR_RETURN(int64_t archive_bytes, file_bytes(path));
  int code = 0;
  Archive archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive) return user_error("{}: is not an npz file: {}", path, zip_message(code));
  NamedLiterals result;
  std::set<std::string> seen;
  uint64_t compressed_sum = 0;
  zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t entry;
    auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive.get(), index, 0, &entry) != 0 || !(entry.valid & ZIP_STAT_NAME)) {
      return user_error("{}: entry {}: {}", path, i, zip_strerror(archive.get()));
    }
    std::string name = entry.name;
    if (!name.ends_with(".npy")) {
      return user_error("{}: entry '{}' is not an array; wanted names that end in .npy", path,
                        name);
    }
    name.resize(name.size() - 4);
    if (!seen.insert(name).second) return user_error("{}: two arrays '{}'", path, name);
    std::string where = fmt::format("{}: array '{}'", path, name);
    if (auto status = check_entry(entry, archive_bytes); !status) {
      return error_in(where, status.error());
    }
    // Overlapping entries could otherwise use the same bytes many times.
    compressed_sum += entry.comp_size;
    if (compressed_sum > static_cast<uint64_t>(archive_bytes)) {
      return user_error("{}: its entries hold more than the file: damaged?", where);
    }
    bool text = false;
    auto literal = read_entry(archive.get(), index, static_cast<int64_t>(entry.size),
                              texts != nullptr ? &text : nullptr);
    if (!literal) return error_in(where, literal.error());
    if (text) texts->insert(name);
    result.emplace_back(std::move(name), std::move(*literal));
  }
  return result;
}

Status write_npz(const std::string& path, const NamedLiterals& literals,
                 const std::set<std::string>& texts) {
  if (auto status = check_names(literals); !status) return error_in(path, status.error());
  std::vector<std::string> headers;
  for (const auto& [name, literal] : literals) {
    auto header = make_npy_header(literal.type(), literal.shape().extents(), texts.contains(name));
    if (!header) return error_in(path + ": " + name, header.error());
    headers.push_back(std::move(*header));
  }
  std::string temporary = temporary_name(path);
  if (literals.empty()) {
    if (auto status = write_empty_archive(temporary); !status) {
      return error_in(path, status.error());
    }
    return publish(temporary, path);
  }
  int code = 0;
  Archive archive(zip_open(temporary.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive) return machine_error("{}: cannot be written: {}", path, zip_message(code));
  for (size_t i = 0; i < literals.size(); ++i) {
    auto status = add_entry(archive.get(), literals[i].first, headers[i], literals[i].second);
    if (!status) return error_in(path, status.error());
  }
  if (zip_close(archive.get()) != 0) {
    return machine_error("{}: cannot be written: {}", path, zip_strerror(archive.get()));
  }
  (void)archive.release();  // closed
  return publish(temporary, path);
}

Literal ids_of_texts(const Literal& points, const std::function<uint32_t(const std::string&)>& id) {
  std::vector<int64_t> extents = points.shape().extents();
  const auto width = static_cast<size_t>(extents.back());
  extents.pop_back();
  Literal ids(Shape::array(kTextType, extents));
  const auto from = points.values<uint32_t>();
  for (int64_t i = 0; i < ids.elems(); ++i) {
    const auto one = from.subspan(static_cast<size_t>(i) * width, width);
    std::vector<uint32_t> text(one.begin(), one.end());
    while (!text.empty() && text.back() == 0) text.pop_back();
    ids.set_s64(i, id(utf8(text)));
  }
  return ids;
}

Result<Literal> texts_of_ids(const Literal& ids, const std::function<std::string(uint32_t)>& text) {
  std::vector<std::vector<uint32_t>> texts;
  size_t width = 1;  // numpy has no strings of width 0
  for (int64_t i = 0; i < ids.elems(); ++i) {
    texts.push_back(code_points(text(static_cast<uint32_t>(ids.get_s64(i)))));
    width = std::max(width, texts.back().size());
  }
  std::vector<int64_t> extents = ids.shape().extents();
  extents.push_back(static_cast<int64_t>(width));
  HEDDLE_ASSIGN_OR_RETURN(Literal points, Literal::make(Shape::array(Type::u32, extents)));
  for (size_t i = 0; i < texts.size(); ++i)
    for (size_t k = 0; k < texts[i].size(); ++k)
      points.set_s64(static_cast<int64_t>(i * width + k), texts[i][k]);
  return points;
}

}  // namespace heddle::tensor
