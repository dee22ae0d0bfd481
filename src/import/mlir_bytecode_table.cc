#include "import/mlir_bytecode_table.h"

#include <algorithm>

#include "import/mlir_parser.h"

namespace heddle::import {
namespace {

constexpr std::string_view kMagic = "ML\xefR";
constexpr int kDeepest = 200;  // nested attributes and types

// Sections by number, and the format versions that introduced features.
enum Section : uint8_t {
  kStrings,
  kDialects,
  kEntries,
  kOffsets,
  kOperations,
  kResources,
  kResourceOffsets,
  kDialectVersion,
  kProperties
};
constexpr std::array<std::string_view, 9> kSectionNames = {"section of strings",
                                                           "section of dialects",
                                                           "section of attributes and types",
                                                           "section of offsets",
                                                           "section of operations",
                                                           "section of resources",
                                                           "section of resource offsets",
                                                           "section of a dialect's version",
                                                           "section of properties"};
constexpr uint64_t kDialectVersions = 1, kSizedOpNames = 4, kNativeProperties = 5;

uint64_t weight_of(const MlirType& type) {
  uint64_t weight = 1 + type.dims.size() / 16 + type.bounds.size() / 16 + type.text.size() / 128;
  for (const auto* list : {&type.elements, &type.results})
    for (const MlirType& element : *list) weight += weight_of(element);
  return weight;
}

uint64_t weight_of(const MlirAttr& attr) {
  uint64_t weight = weight_of(attr.type) + attr.text.size() / 128;
  for (const MlirAttr& element : attr.elements) weight += weight_of(element);
  for (const auto& [name, value] : attr.fields) weight += weight_of(value);
  return weight;
}

// The text of an entry without a custom encoding. It is not parsed but kept.
void read_text(std::string_view text, MlirAttr* attr) {
  attr->kind = MlirAttr::Kind::other;
  attr->text = std::string(text);
}

void read_text(std::string_view text, MlirType* type) {
  try {
    *type = parse_mlir_type(text);
  } catch (const Failure&) {
    type->kind = MlirType::Kind::other;
    type->text = std::string(text);
  }
}

}  // namespace

BytecodeTable::BytecodeTable(std::string_view file,
                             std::span<const BytecodeDialect* const> dialects)
    : head_(parse_bytecode_head(file)) {
  if (head_.version > kNewestBytecode)
    fail("bytecode of version {} (written by {}): versions 0 to {} are read", head_.version,
         quoted(head_.producer), kNewestBytecode);
  most_weight_ = 2 * file.size() + (uint64_t{1} << 19);
  ByteReader bytes("the file", file, 0);
  bytes.take(kMagic.size());
  bytes.varint();
  bytes.c_string();
  read_sections(bytes);
  read_strings(*sections_[kStrings]);
  if (sections_[kProperties]) read_properties(*sections_[kProperties]);
  read_dialects(*sections_[kDialects], dialects);
  if (sections_[kResources] && sections_[kResourceOffsets])
    read_resources(*sections_[kResourceOffsets], *sections_[kResources]);
  read_offsets(*sections_[kOffsets], *sections_[kEntries]);
  operations_ = *sections_[kOperations];
}

ByteReader BytecodeTable::section(ByteReader& from, uint8_t* id) {
  constexpr uint8_t kAligned = 0x80;
  const uint8_t head = from.byte();
  *id = head & (kAligned - 1);
  const uint64_t size = from.varint();
  if (*id >= kSectionNames.size()) from.fail("section {} is not known", *id);
  if ((head & kAligned) != 0) from.align(from.varint());
  if (size > from.left())
    from.fail("the {} has {} bytes, {} are left", kSectionNames[*id], size, from.left());
  const size_t place = from.place();
  return {kSectionNames[*id], from.take(static_cast<size_t>(size)), place};
}

void BytecodeTable::read_sections(ByteReader& file) {
  while (!file.empty()) {
    uint8_t id = 0;
    const ByteReader bytes = section(file, &id);
    if (sections_[id]) file.fail("a second {}", kSectionNames[id]);
    sections_[id] = bytes;
  }
  for (const Section id : {kStrings, kDialects, kEntries, kOffsets, kOperations})
    if (!sections_[id]) file.fail("no {}", kSectionNames[id]);
}

// Sizes, the last string's first, followed by the strings, each terminated by a NUL.
void BytecodeTable::read_strings(ByteReader bytes) {
  const size_t count = bytes.count("strings");
  std::vector<size_t> sizes(count);
  for (size_t i = count; i-- > 0;) {
    sizes[i] = bytes.count("bytes");
    if (sizes[i] == 0) bytes.fail("a string of no bytes");
  }
  for (const size_t size : sizes) {
    const std::string_view text = bytes.take(size);
    if (text.back() != '\0') bytes.fail("a string without its end");
    strings_.push_back(text.substr(0, size - 1));
  }
  bytes.want_end();
}

void BytecodeTable::read_dialects(ByteReader bytes,
                                  std::span<const BytecodeDialect* const> readers) {
  const size_t count = bytes.count("dialects");
  for (size_t i = 0; i < count; ++i) {
    Dialect dialect;
    bool versioned = false;
    if (version() < kDialectVersions) {
      dialect.name = string(bytes);
    } else {
      const uint64_t name = bytes.flagged(&versioned);
      if (name >= strings_.size()) bytes.fail("string {}, but there are {}", name, strings_.size());
      dialect.name = strings_[static_cast<size_t>(name)];
    }
    if (versioned) {  // the version of a dialect, which is not used
      uint8_t id = 0;
      section(bytes, &id);
    }
    for (const BytecodeDialect* reader : readers)
      if (reader->name == dialect.name) dialect.reader = reader;
    dialects_.push_back(dialect);
  }
  read_op_names(bytes);
}

void BytecodeTable::read_op_names(ByteReader& bytes) {
  if (version() >= kSizedOpNames) bytes.count("operations' names");
  while (!bytes.empty()) {
    BytecodeOpName op;
    op.dialect = bytes.index("dialect", dialects_.size());
    for (size_t n = bytes.count("names"); n > 0; --n) {
      if (version() < kNativeProperties) {
        op.name = string(bytes);
      } else {
        const uint64_t name = bytes.flagged(&op.registered);
        if (name >= strings_.size())
          bytes.fail("string {}, but there are {}", name, strings_.size());
        op.name = strings_[static_cast<size_t>(name)];
      }
      op_names_.push_back(op);
    }
  }
}

template <typename T>
void BytecodeTable::read_group(ByteReader& offsets, ByteReader& entries,
                               std::vector<Entry<T>>& table) {
  for (size_t next = 0; next < table.size();) {
    const size_t dialect = offsets.index("dialect", dialects_.size());
    const size_t count = offsets.count("entries");
    if (count > table.size() - next)
      offsets.fail("{} entries, but {} are left", count, table.size() - next);
    for (size_t i = 0; i < count; ++i) {
      Entry<T>& entry = table[next++];
      entry.dialect = static_cast<uint32_t>(dialect);
      const uint64_t size = offsets.flagged(&entry.custom);
      if (size > entries.left())
        offsets.fail("an entry of {} bytes, but {} are left", size, entries.left());
      entry.bytes = entries.part(static_cast<size_t>(size));
    }
  }
}

void BytecodeTable::read_offsets(ByteReader offsets, ByteReader entries) {
  const size_t attributes = offsets.count("attributes"), types = offsets.count("types");
  attributes_.resize(attributes);
  types_.resize(types);
  read_group(offsets, entries, attributes_);
  read_group(offsets, entries, types_);
  offsets.want_end();
}

void BytecodeTable::read_properties(ByteReader bytes) {
  const size_t count = bytes.count("properties");
  for (size_t i = 0; i < count; ++i) properties_.push_back(bytes.part(bytes.count("bytes")));
  bytes.want_end();
}

// Groups without a dialect come first and are skipped; then those of dialects.
void BytecodeTable::read_resources(ByteReader offsets, ByteReader bytes) {
  constexpr uint8_t kBlob = 0;
  size_t others = offsets.count("groups");
  while (!offsets.empty()) {
    const bool external = others > 0;
    if (external) {
      --others;
      string(offsets);
    } else {
      offsets.index("dialect", dialects_.size());
    }
    for (size_t n = offsets.count("resources"); n > 0; --n) {
      string(offsets);
      const uint64_t size = offsets.varint();
      if (size > bytes.left())
        offsets.fail("a resource of {} bytes, but {} are left", size, bytes.left());
      ByteReader value = bytes.part(static_cast<size_t>(size));
      const uint8_t kind = offsets.byte();
      if (external) continue;
      std::string_view blob;
      if (kind == kBlob && !value.empty()) {
        const uint64_t alignment = value.varint(), length = value.varint();
        value.align(alignment);
        if (length > value.left()) value.fail("{} bytes, but {} are left", length, value.left());
        blob = value.take(static_cast<size_t>(length));
      }
      resources_.push_back(blob);
    }
  }
}

std::string_view BytecodeTable::string(ByteReader& from) const {
  return strings_[from.index("string", strings_.size())];
}

std::string_view BytecodeTable::resource(ByteReader& from) const {
  return resources_[from.index("resource", resources_.size())];
}

template <typename T>
std::shared_ptr<const T> BytecodeTable::decode(Entry<T>& entry) {
  const BytecodeDialect* reader = dialects_[entry.dialect].reader;
  auto value = std::make_shared<T>();
  BytecodeEntry encoded(this, entry.bytes);
  if (!entry.custom) {
    read_text(encoded.bytes.c_string(), value.get());
    return value;
  }
  if (reader == nullptr) {  // keeps only the dialect's name
    value->kind = T::Kind::other;
    value->text = std::string(dialects_[entry.dialect].name);
    return value;
  }
  if constexpr (std::is_same_v<T, MlirAttr>) {
    *value = reader->attribute(encoded);
  } else {
    *value = reader->type(encoded);
  }
  encoded.bytes.want_end();
  return value;
}

template <typename T>
T BytecodeTable::copy(std::vector<Entry<T>>& table, size_t index, const ByteReader& from,
                      std::string_view what) {
  if (index >= table.size()) from.fail("{} {}, but there are {}", what, index, table.size());
  Entry<T>& entry = table[index];
  if (!entry.value) {
    if (entry.open) from.fail("{} {} is inside itself", what, index);
    if (++depth_ > kDeepest) from.fail("nested deeper than {} levels", kDeepest);
    entry.open = true;
    entry.value = decode(entry);
    entry.open = false;
    entry.weight = weight_of(*entry.value);
    --depth_;
  }
  if (entry.weight > most_weight_ - weight_)
    from.fail("attributes and types are too large, written out: more than {}", most_weight_);
  weight_ += entry.weight;
  return *entry.value;
}

MlirAttr BytecodeTable::attribute_at(size_t index, const ByteReader& from) {
  return copy(attributes_, index, from, "attribute");
}
MlirType BytecodeTable::type_at(size_t index, const ByteReader& from) {
  return copy(types_, index, from, "type");
}
MlirAttr BytecodeTable::attribute(ByteReader& from) {
  return attribute_at(from.index("attribute", attributes_.size()), from);
}
MlirType BytecodeTable::type(ByteReader& from) {
  return type_at(from.index("type", types_.size()), from);
}

// Chains of callers are long: no recursion, and no tree for them. Numbers of builtin attributes.
std::string BytecodeTable::location_name(ByteReader& from) {
  enum Code : uint8_t { kText = 2, kCallSite = 10, kFused = 12, kFusedWith = 13, kNamed = 14 };
  constexpr size_t kMostSteps = 200;
  const size_t wanted = from.index("location", attributes_.size());
  if (const auto found = location_names_.find(wanted); found != location_names_.end())
    return found->second;
  std::string& name = location_names_[wanted];
  std::vector<size_t> open{wanted};
  for (size_t step = 0; step < kMostSteps && !open.empty() && name.empty(); ++step) {
    const Entry<MlirAttr>& entry = attributes_[open.back()];
    open.pop_back();
    const BytecodeDialect* reader = dialects_[entry.dialect].reader;
    if (!entry.custom || reader == nullptr || reader->name != "builtin") continue;
    ByteReader bytes = entry.bytes;
    const uint64_t code = bytes.varint();
    std::vector<size_t> inside;
    if (code == kNamed || code == kCallSite) {
      for (int i = 0; i < 2; ++i) inside.push_back(bytes.index("attribute", attributes_.size()));
    } else if (code == kFused || code == kFusedWith) {
      for (size_t n = std::min(bytes.count("locations"), kMostSteps); n > 0; --n)
        inside.push_back(bytes.index("attribute", attributes_.size()));
    } else if (code == kText && step > 0) {
      name = std::string(string(bytes));
    }
    open.insert(open.end(), inside.rbegin(), inside.rend());
    if (open.size() > kMostSteps) open.erase(open.begin(), open.end() - kMostSteps);
  }
  return name;
}

void BytecodeTable::properties(const BytecodeOpName& name, ByteReader& from,
                               std::vector<std::pair<std::string, MlirAttr>>& attrs) {
  if (!name.registered) {  // a dictionary
    MlirAttr all = attribute(from);
    std::move(all.fields.begin(), all.fields.end(), std::back_inserter(attrs));
    return;
  }
  ByteReader bytes = properties_.empty()
                         ? (from.fail("properties, but there is no section of them"), ByteReader())
                         : properties_[from.index("properties", properties_.size())];
  const BytecodeDialect* reader = dialects_[name.dialect].reader;
  if (reader == nullptr)
    from.fail("{}.{}: attributes of this dialect are not read from bytecode, only from text",
              dialects_[name.dialect].name, name.name);
  if (reader->properties == nullptr) return;
  const std::optional<std::string> names = reader->properties(name.name);
  if (!names) from.fail("operation {}.{} is not known", reader->name, name.name);
  // Writers that did not know the optional attributes leave no slots for them.
  int64_t given = 0;
  for (ByteReader counted = bytes; !counted.empty(); ++given) counted.varint();
  const bool all = given == std::count(names->begin(), names->end(), ' ') + 1;
  BytecodeEntry encoded(this, bytes);
  std::string_view rest = *names;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string_view key = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::optional<MlirAttr> value;
    if (key.ends_with('?')) {
      key.remove_suffix(1);
      if (all) value = encoded.optional_attribute();
    } else {
      value = encoded.attribute();
    }
    if (value) attrs.emplace_back(key, std::move(*value));
  }
  encoded.bytes.want_end();
}

MlirAttr BytecodeEntry::attribute() { return table_.attribute(bytes); }
MlirType BytecodeEntry::type() { return table_.type(bytes); }
std::string BytecodeEntry::string() { return std::string(table_.string(bytes)); }
std::string_view BytecodeEntry::resource() { return table_.resource(bytes); }

std::optional<MlirAttr> BytecodeEntry::optional_attribute() {
  bool there = false;
  const uint64_t index = bytes.flagged(&there);
  if (!there) return std::nullopt;
  return table_.attribute_at(static_cast<size_t>(index), bytes);
}

std::vector<MlirAttr> BytecodeEntry::attributes() {
  std::vector<MlirAttr> list;
  for (size_t n = bytes.count("attributes"); n > 0; --n) list.push_back(attribute());
  return list;
}

std::vector<MlirType> BytecodeEntry::types() {
  std::vector<MlirType> list;
  for (size_t n = bytes.count("types"); n > 0; --n) list.push_back(type());
  return list;
}

std::vector<int64_t> BytecodeEntry::signed_varints(size_t most) {
  const size_t count = bytes.count("numbers");
  if (count > most) bytes.fail("{} numbers, wanted at most {}", count, most);
  std::vector<int64_t> list;
  for (size_t i = 0; i < count; ++i) list.push_back(bytes.signed_varint());
  return list;
}

BytecodeFile parse_bytecode_head(std::string_view file) {
  ByteReader bytes("the file", file, 0);
  if (bytes.take(std::min(kMagic.size(), file.size())) != kMagic)
    bytes.fail("no bytecode of MLIR: it begins otherwise");
  BytecodeFile head;
  head.version = bytes.varint();
  head.producer = std::string(bytes.c_string());
  return head;
}

}  // namespace heddle::import
