// Layout of a file (little-endian):
//   0  magic (8)     8  version u32    12  bytes of the header block u32
//  16  bytes of the file u64           24  hash of the rest of the header block u64
//  32  three sections {offset u64, bytes u64, hash u64}: meta, object, constants
// 104  bytes without padding: meta u64, object u64, constants u64
// 128  number of programs u64
// 136  five texts {bytes u64, text}: name, target name, features, build id, dimensions
// The object section holds the programs' objects one after another, each followed by the hash of
// its contract (contract.h); constants shared by several programs are stored once.
// The header block and the sections are padded with zeros to 4 KiB and follow without gaps, and the
// hashes cover the padding, so that no byte of the file is unchecked.
#include "program/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "program/contract.h"
#include "program/encode.h"
#include "program/file_sections.h"
#include "program/verify.h"

namespace heddle::program {
namespace {

constexpr char kMagic[8] = {'\x89', 'H', 'E', 'D', 'D', 'L', 'E', '\n'};
constexpr size_t kHashBegin = 32;
constexpr uint64_t kMaxHeader = uint64_t{1} << 24;
constexpr int kSections = 3;  // meta, object, constants
constexpr int64_t kContractBytes = sizeof(Hash128);

struct Header {
  FileHeader facts;
  uint64_t header_bytes = 0;
  int64_t meta_bytes = 0;  // without padding
  std::array<Section, kSections> sections;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool close_now() { return close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

template <typename T>
void append_number(std::vector<uint8_t>& out, T value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(value));
}

template <typename T>
T number_at(const uint8_t* data, size_t offset) {
  T value;
  std::memcpy(&value, data + offset, sizeof(value));
  return value;
}

std::vector<uint8_t> header_block(const Header& header) {
  std::vector<uint8_t> out(kMagic, kMagic + sizeof(kMagic));
  append_number<uint32_t>(out, static_cast<uint32_t>(header.facts.version));
  append_number<uint32_t>(out, static_cast<uint32_t>(header.header_bytes));
  append_number<uint64_t>(out, static_cast<uint64_t>(header.facts.file_bytes));
  append_number<uint64_t>(out, 0);  // the hash, below
  for (const Section& section : header.sections)
    for (uint64_t value : {section.offset, section.bytes, section.hash})
      append_number<uint64_t>(out, value);
  append_number<int64_t>(out, header.meta_bytes);
  append_number<int64_t>(out, header.facts.object_bytes);
  append_number<int64_t>(out, header.facts.constant_bytes);
  append_number<int64_t>(out, header.facts.programs);
  const FileHeader& facts = header.facts;
  for (const std::string* text :
       {&facts.name, &facts.target_name, &facts.features, &facts.build_id, &facts.dimensions}) {
    append_number<uint64_t>(out, text->size());
    out.insert(out.end(), text->begin(), text->end());
  }
  out.resize(page_up(out.size()));
  if (header.header_bytes == 0) return out;  // only the size was needed
  // The seed covers the bytes before the hash.
  const uint64_t seed = hash64({reinterpret_cast<const char*>(out.data()), 24});
  const uint64_t hash = hash64(
      {reinterpret_cast<const char*>(out.data()) + kHashBegin, out.size() - kHashBegin}, seed);
  std::memcpy(out.data() + 24, &hash, sizeof(hash));
  return out;
}

// `data` holds the first `bytes` bytes of the file, at least the whole header block.
Result<Header> parse_header(const std::string& path, const uint8_t* data, uint64_t bytes,
                            uint64_t file_bytes) {
  if (bytes < kPage || std::memcmp(data, kMagic, sizeof(kMagic)) != 0)
    return user_error("{}: not a compiled program; give a .heddle file", path);
  Header header;
  header.facts.version = static_cast<int>(number_at<uint32_t>(data, 8));
  header.header_bytes = number_at<uint32_t>(data, 12);
  header.facts.file_bytes = number_at<int64_t>(data, 16);
  if (header.header_bytes < kPage || header.header_bytes > bytes ||
      header.header_bytes % kPage != 0)
    return user_error("{}: damaged: a header of {} bytes; compile the model again", path,
                      header.header_bytes);
  const uint64_t seed = hash64({reinterpret_cast<const char*>(data), 24});
  const uint64_t hash = hash64(
      {reinterpret_cast<const char*>(data) + kHashBegin, header.header_bytes - kHashBegin}, seed);
  if (hash != number_at<uint64_t>(data, 24))
    return user_error("{}: damaged: the checksum of its header is wrong; compile the model again",
                      path);
  if (header.facts.version != kFileVersion)
    return user_error("{}: of format version {}, this heddle reads {}; compile the model again",
                      path, header.facts.version, kFileVersion);
  if (static_cast<uint64_t>(header.facts.file_bytes) != file_bytes)
    return user_error("{}: damaged: {} bytes, its header says {}; compile the model again", path,
                      file_bytes, header.facts.file_bytes);
  uint64_t next = header.header_bytes;
  size_t at = kHashBegin;
  for (Section& section : header.sections) {
    section.offset = number_at<uint64_t>(data, at);
    section.bytes = number_at<uint64_t>(data, at + 8);
    section.hash = number_at<uint64_t>(data, at + 16);
    at += 24;
    if (section.offset != next || section.bytes % kPage != 0 || section.bytes > file_bytes - next)
      return user_error("{}: damaged: its sections do not fit", path);
    next += section.bytes;
  }
  if (next != file_bytes) return user_error("{}: damaged: its sections do not fit", path);
  int64_t* const unpadded[] = {&header.meta_bytes, &header.facts.object_bytes,
                               &header.facts.constant_bytes};
  for (int i = 0; i < kSections; ++i, at += 8) {
    *unpadded[i] = number_at<int64_t>(data, at);
    if (*unpadded[i] < 0 || static_cast<uint64_t>(*unpadded[i]) > header.sections[i].bytes)
      return user_error("{}: damaged: its sections do not fit", path);
  }
  FileHeader& facts = header.facts;
  facts.programs = number_at<int64_t>(data, at);
  at += 8;
  for (std::string* text :
       {&facts.name, &facts.target_name, &facts.features, &facts.build_id, &facts.dimensions}) {
    if (at + 8 > header.header_bytes) return user_error("{}: damaged: its header", path);
    const uint64_t size = number_at<uint64_t>(data, at);
    at += 8;
    if (size > header.header_bytes - at) return user_error("{}: damaged: its header", path);
    text->assign(reinterpret_cast<const char*>(data) + at, size);
    at += size;
  }
  return header;
}

// Reads name and features from the target's text.
void read_target(const std::string& text, FileHeader& facts) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  if (auto name = json.find("name"); name != json.end() && name->is_string())
    facts.target_name = name->get<std::string>();
  if (auto list = json.find("features"); list != json.end() && list->is_array()) {
    for (const auto& feature : *list) {
      if (!feature.is_string()) continue;
      facts.features += (facts.features.empty() ? "" : ",") + feature.get<std::string>();
    }
  }
}

// Constants in the order of their offsets in the image.
std::vector<size_t> constant_order(const Program& program) {
  std::vector<size_t> order;
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::constant) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Buffer &x = program.buffers[a], &y = program.buffers[b];
    return std::pair(x.offset_bytes, x.bytes) < std::pair(y.offset_bytes, y.bytes);
  });
  return order;
}

struct Piece {  // of the image
  int64_t offset = 0, bytes = 0;
  const void* data = nullptr;
};

// The first program's constants keep their offsets. A constant of another program reuses an equal
// one in the image (each at most once per program), or is appended.
std::vector<Piece> place_constants(Saved& saved) {
  std::vector<Piece> image;
  std::map<Hash128, std::vector<size_t>> known;  // pieces by content
  int64_t end = 0;
  for (size_t v = 0; v < saved.variants.size(); ++v) {
    Program& program = saved.variants[v].program;
    std::map<Hash128, size_t> taken;
    for (size_t i : constant_order(program)) {
      Buffer& buffer = program.buffers[i];
      const void* data = program.constants[i].data();
      Hash128 content;
      if (saved.variants.size() > 1) {
        content = hash128({static_cast<const char*>(data), static_cast<size_t>(buffer.bytes)});
        const std::vector<size_t>& alike = known[content];
        if (const size_t next = taken[content]++; next < alike.size()) {
          buffer.offset_bytes = image[alike[next]].offset;
          continue;
        }
        known[content].push_back(image.size());
      }
      if (v > 0) buffer.offset_bytes = end;
      image.push_back({buffer.offset_bytes, buffer.bytes, data});
      end = std::max(end, (buffer.offset_bytes + buffer.bytes + kAlignmentBytes - 1) /
                              kAlignmentBytes * kAlignmentBytes);
    }
  }
  return image;
}

bool write_sections(const Saved& saved, const std::vector<Piece>& image, int fd, Header& header) {
  SectionWriter writer(fd, header.header_bytes);
  const std::vector<uint8_t> meta = encode(saved);
  header.meta_bytes = static_cast<int64_t>(meta.size());
  if (!writer.add(meta.data(), meta.size()) || !writer.end(&header.sections[0])) return false;
  for (const Variant& variant : saved.variants) {
    const Hash128 contract = contract_of(variant);
    if (!writer.add(variant.program.object.data(), variant.program.object.size()) ||
        !writer.add(&contract, sizeof contract))
      return false;
  }
  if (!writer.end(&header.sections[1])) return false;
  int64_t bytes = 0;
  for (const Piece& piece : image) {
    if (!writer.pad_to(static_cast<uint64_t>(piece.offset)) ||
        !writer.add(piece.data, static_cast<size_t>(piece.bytes)))
      return false;
    bytes = std::max(bytes, piece.offset + piece.bytes);
  }
  header.facts.constant_bytes = bytes;
  if (!writer.end(&header.sections[2])) return false;
  header.facts.file_bytes = static_cast<int64_t>(writer.offset());
  const std::vector<uint8_t> block = header_block(header);
  return pwrite(fd, block.data(), block.size(), 0) == static_cast<ssize_t>(block.size());
}

struct Mapping {
  void* data = MAP_FAILED;
  size_t bytes = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  ~Mapping() {
    if (data != MAP_FAILED) munmap(data, bytes);
  }
  const uint8_t* at(uint64_t offset) const { return static_cast<const uint8_t*>(data) + offset; }
};

Result<uint64_t> open_size(const std::string& path, const Descriptor& file) {
  struct stat info;
  if (file.get() < 0 || fstat(file.get(), &info) != 0)
    return user_error("{}: cannot open: {}", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return user_error("{}: not a file", path);
  return static_cast<uint64_t>(info.st_size);
}

// Constants become views of the mapped image.
Status map_constants(const std::string& path, const Section& image,
                     const std::vector<tensor::Shape>& shapes,
                     const std::shared_ptr<const Mapping>& mapping, Program& program) {
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != BufferKind::constant) continue;
    const tensor::Shape& shape = shapes[i];
    const int64_t room = static_cast<int64_t>(image.bytes) - buffer.bytes;
    if (!shape.is_array() || !shape.is_static() || shape.bytes() != buffer.bytes ||
        buffer.bytes < 0 || buffer.offset_bytes < 0 || buffer.offset_bytes > room ||
        buffer.offset_bytes % kAlignmentBytes != 0)
      return user_error("{}: damaged: constant {} does not fit", path, buffer.name);
    program.constants[i] = tensor::Literal::view(
        shape, mapping->at(image.offset + static_cast<uint64_t>(buffer.offset_bytes)), mapping);
  }
  return {};
}

Result<Saved> read_saved(const std::string& path, const Header& header,
                         std::shared_ptr<const Mapping> mapping) {
  static constexpr const char* kNames[kSections] = {"commands", "code", "constants"};
  for (int i = 0; i < kSections; ++i) {
    const Section& section = header.sections[i];
    if (section_hash(mapping->at(section.offset), section.bytes) != section.hash)
      return user_error("{}: damaged: the checksum of its {} is wrong; compile the model again",
                        path, kNames[i]);
  }
  const auto [meta, object, image] = header.sections;
  auto decoded = decode_saved({mapping->at(meta.offset), static_cast<size_t>(header.meta_bytes)});
  if (!decoded) return error_in(path + ": damaged", decoded.error());
  Saved saved = std::move(decoded->saved);
  int64_t object_at = 0;
  std::vector<Hash128> contracts;
  for (size_t v = 0; v < saved.variants.size(); ++v) {
    Program& program = saved.variants[v].program;
    const int64_t bytes = decoded->object_bytes[v];
    if (bytes < 0 || bytes > static_cast<int64_t>(object.bytes) - object_at - kContractBytes)
      return user_error("{}: damaged: the code of program {} does not fit", path, v);
    const uint8_t* begin = mapping->at(object.offset + static_cast<uint64_t>(object_at));
    program.object.assign(begin, begin + bytes);
    contracts.push_back(number_at<Hash128>(begin, static_cast<size_t>(bytes)));
    object_at += bytes + kContractBytes;
    HEDDLE_RETURN_IF_ERROR(
        map_constants(path, image, decoded->constant_shapes[v], mapping, program));
  }
  if (Status status = verify(saved); !status) return error_in(path + ": damaged", status.error());
  for (size_t v = 0; v < saved.variants.size(); ++v)
    if (contract_of(saved.variants[v]) != contracts[v])
      return user_error("{}: damaged: the code of program {} was made for other commands", path, v);
  return saved;
}

// From a file, or (descriptor -1) from a copy of `from`, aligned as the sections of a file are.
Result<Saved> load_mapped(const std::string& path, uint64_t bytes, int descriptor,
                          const char* from = nullptr) {
  if (bytes < kPage) return user_error("{}: not a compiled program, or cut short", path);
  const bool copied = descriptor < 0;
  auto mapping = std::make_shared<Mapping>();
  mapping->bytes = bytes;
  mapping->data = mmap(nullptr, bytes, copied ? PROT_READ | PROT_WRITE : PROT_READ,
                       copied ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE, descriptor, 0);
  if (mapping->data == MAP_FAILED)
    return machine_error("{}: cannot map {} bytes: {}", path, bytes, strerror(errno));
  if (copied) std::memcpy(mapping->data, from, bytes);
  HEDDLE_ASSIGN_OR_RETURN(const Header header, parse_header(path, mapping->at(0), bytes, bytes));
  return read_saved(path, header, std::move(mapping));
}

}  // namespace

Status save(const Program& program, const std::string& path) {
  Saved saved;
  saved.variants.push_back({{}, {}, {}, program});
  return save(saved, path);
}

Status save(const Saved& saved, const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(verify(saved));
  Saved placed = saved;  // shares the constants' memory
  const std::vector<Piece> image = place_constants(placed);
  const Program& first = saved.variants[0].program;
  Header header;
  header.facts.version = kFileVersion;
  header.facts.name = first.name;
  header.facts.build_id = first.build_id;
  header.facts.dimensions = dimensions_text(saved.symbols);
  header.facts.programs = static_cast<int64_t>(saved.variants.size());
  for (const Variant& variant : saved.variants)
    header.facts.object_bytes += static_cast<int64_t>(variant.program.object.size());
  read_target(first.target, header.facts);
  const size_t header_bytes = header_block(header).size();
  if (header_bytes > kMaxHeader) return user_error("{}: the program's name is too long", path);
  header.header_bytes = header_bytes;

  static std::atomic<int> counter{0};
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), ++counter);
  Descriptor file(open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return machine_error("{}: cannot write: {}", path, strerror(errno));
  const bool written = write_sections(placed, image, file.get(), header) &&
                       fsync(file.get()) == 0 && file.close_now() &&
                       rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    const int error = errno;
    unlink(temporary.c_str());
    return machine_error("{}: cannot write: {}", path, strerror(error));
  }
  return {};
}

Result<Saved> load_saved(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  HEDDLE_ASSIGN_OR_RETURN(const uint64_t bytes, open_size(path, file));
  return load_mapped(path, bytes, file.get());
}

Result<Saved> load_saved(const std::string& name, std::string_view bytes) {
  return load_mapped(name, bytes.size(), -1, bytes.data());
}

Result<Program> load(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(Saved saved, load_saved(path));
  if (!saved.symbols.empty())
    return user_error("{}: {} programs, one for each bucket of {}", path, saved.variants.size(),
                      dimensions_text(saved.symbols));
  return std::move(saved.variants[0].program);
}

Result<FileHeader> read_header(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  HEDDLE_ASSIGN_OR_RETURN(const uint64_t bytes, open_size(path, file));
  std::vector<uint8_t> block(std::min(bytes, kPage));
  auto read_all = [&] {
    return pread(file.get(), block.data(), block.size(), 0) == static_cast<ssize_t>(block.size());
  };
  if (!read_all()) return machine_error("{}: cannot read: {}", path, strerror(errno));
  if (block.size() == kPage && std::memcmp(block.data(), kMagic, sizeof(kMagic)) == 0) {
    const uint64_t wanted = number_at<uint32_t>(block.data(), 12);
    if (wanted > kPage && wanted <= std::min(bytes, kMaxHeader)) {
      block.resize(wanted);
      if (!read_all()) return machine_error("{}: cannot read: {}", path, strerror(errno));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(Header header, parse_header(path, block.data(), block.size(), bytes));
  return header.facts;
}

}  // namespace heddle::program
