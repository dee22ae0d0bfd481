#include "runtime/loader.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace heddle::runtime {
namespace {

constexpr uint64_t kMaxAlignment = 4096;
constexpr uint64_t kMaxBytes = uint64_t{1} << 31;  // so that 32-bit distances reach everywhere
constexpr size_t kStubBytes = 16;
constexpr uint64_t kObjectAlignment = 64;  // of concatenated objects

struct Outside {
  std::string_view name;
  void* address;
};

// The only functions that kernels may call.
std::span<const Outside> outside_symbols() {
  static const Outside table[] = {
      {"memcpy",
       reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, size_t)>(&memcpy))},
      {"memmove",
       reinterpret_cast<void*>(static_cast<void* (*)(void*, const void*, size_t)>(&memmove))},
      {"memset", reinterpret_cast<void*>(static_cast<void* (*)(void*, int, size_t)>(&memset))},
  };
  return table;
}

uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

const char* relocation_name(uint32_t type) {
  switch (type) {
    case R_X86_64_GOTPCREL:
      return "R_X86_64_GOTPCREL";
    case R_X86_64_GOTPCRELX:
      return "R_X86_64_GOTPCRELX";
    case R_X86_64_REX_GOTPCRELX:
      return "R_X86_64_REX_GOTPCRELX";
    case R_X86_64_GOTOFF64:
      return "R_X86_64_GOTOFF64";
    case R_X86_64_TPOFF32:
      return "R_X86_64_TPOFF32";
    case R_X86_64_TLSGD:
      return "R_X86_64_TLSGD";
    default:
      return "unknown";
  }
}

}  // namespace

class ObjectBuilder {
 public:
  explicit ObjectBuilder(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  Result<std::unique_ptr<Object>> build() {
    HEDDLE_RETURN_IF_ERROR(read_headers());
    HEDDLE_RETURN_IF_ERROR(read_symbols());
    HEDDLE_RETURN_IF_ERROR(lay_out());
    HEDDLE_RETURN_IF_ERROR(map());
    HEDDLE_RETURN_IF_ERROR(resolve());
    HEDDLE_RETURN_IF_ERROR(relocate());
    HEDDLE_RETURN_IF_ERROR(protect());
    return std::move(object_);
  }

  // After build(): where the object ends, at most the number of bytes given.
  uint64_t end() const { return end_; }

 private:
  template <typename... Args>
  static auto fail(fmt::format_string<Args...> format, Args&&... args) {
    return user_error("object code: {}; compile the model again",
                      fmt::format(format, std::forward<Args>(args)...));
  }

  bool inside(uint64_t offset, uint64_t size) const {
    return offset <= bytes_.size() && size <= bytes_.size() - offset;
  }

  // Structures are copied out: the object need not be aligned.
  template <typename T>
  T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  Status read_headers() {
    if (bytes_.size() < sizeof(Elf64_Ehdr)) return fail("only {} bytes", bytes_.size());
    const auto header = read<Elf64_Ehdr>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_type != ET_REL || header.e_machine != EM_X86_64)
      return fail("not a relocatable x86-64 ELF object");
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
        !inside(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
      return fail("its section table is wrong");
    end_ = header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
      sections_.push_back(read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
      const Elf64_Shdr& s = sections_.back();
      if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL && !inside(s.sh_offset, s.sh_size))
        return fail("section {} lies outside", i);
      if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL)
        end_ = std::max(end_, s.sh_offset + s.sh_size);
    }
    if (header.e_shstrndx >= sections_.size() || sections_[header.e_shstrndx].sh_type != SHT_STRTAB)
      return fail("it has no section names");
    names_ = sections_[header.e_shstrndx];
    return {};
  }

  // A string of a string table; empty if it is not terminated inside.
  std::string_view text(const Elf64_Shdr& table, uint32_t offset) const {
    if (offset >= table.sh_size) return {};
    const char* begin = reinterpret_cast<const char*>(bytes_.data()) + table.sh_offset + offset;
    const void* end = std::memchr(begin, 0, table.sh_size - offset);
    if (end == nullptr) return {};
    return {begin, static_cast<size_t>(static_cast<const char*>(end) - begin)};
  }

  std::string_view section_name(size_t i) const { return text(names_, sections_[i].sh_name); }

  Status read_symbols() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type != SHT_SYMTAB) continue;
      if (symbol_table_ != 0) return fail("it has two symbol tables");
      if (s.sh_entsize != sizeof(Elf64_Sym) || s.sh_link >= sections_.size() ||
          sections_[s.sh_link].sh_type != SHT_STRTAB)
        return fail("its symbol table is wrong");
      symbol_table_ = i;
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= s.sh_size; at += sizeof(Elf64_Sym))
        symbols_.push_back(read<Elf64_Sym>(s.sh_offset + at));
    }
    if (symbol_table_ == 0) return fail("it has no symbol table");
    return {};
  }

  bool is_loaded(size_t section) const { return places_[section] != kNotLoaded; }

  // Code first, then read-only data from the next page. Unwind tables are left out.
  Status lay_out() {
    places_.assign(sections_.size(), kNotLoaded);
    uint64_t end = 0, sum = 0;
    for (const bool code : {true, false}) {
      for (size_t i = 0; i < sections_.size(); ++i) {
        const Elf64_Shdr& s = sections_[i];
        if (!(s.sh_flags & SHF_ALLOC) || s.sh_size == 0) continue;
        if (code != ((s.sh_flags & SHF_EXECINSTR) != 0)) continue;
        const std::string_view name = section_name(i);
        if (s.sh_type == SHT_X86_64_UNWIND || name == ".eh_frame" || s.sh_type == SHT_NOTE)
          continue;
        if (s.sh_flags & SHF_TLS) return fail("section {} is thread-local", name);
        const bool relocated_once = name.starts_with(".data.rel.ro");
        if ((s.sh_flags & SHF_WRITE) && !relocated_once)
          return fail("section {} is writable, kernels have no state", name);
        if (s.sh_type != SHT_PROGBITS) return fail("section {} is of type {}", name, s.sh_type);
        const uint64_t alignment = std::max<uint64_t>(s.sh_addralign, 1);
        if (alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0)
          return fail("section {} is aligned to {}", name, alignment);
        // Overlapping sections would let a small object fill memory.
        sum += s.sh_size;
        if (sum > bytes_.size() || end > kMaxBytes) return fail("its sections are too large");
        end = align_up(end, alignment);
        places_[i] = end;
        end += s.sh_size;
      }
      if (!code) continue;
      stubs_ = align_up(end, kStubBytes);
      code_end_ = align_up(stubs_ + outside_symbols().size() * kStubBytes, page_bytes());
      end = code_end_;
    }
    total_ = std::max<uint64_t>(align_up(end, page_bytes()), page_bytes());
    return {};
  }

  Status map() {
    void* memory =
        mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return machine_error("no memory for {} bytes of code: {}", total_, strerror(errno));
    object_.reset(new Object);
    object_->memory_ = memory;
    object_->bytes_ = total_;
    base_ = static_cast<uint8_t*>(memory);
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (!is_loaded(i)) continue;
      std::memcpy(base_ + places_[i], bytes_.data() + sections_[i].sh_offset, sections_[i].sh_size);
    }
    // jmp *2(%rip), two bytes of padding, the address: external functions may be anywhere.
    for (size_t i = 0; i < outside_symbols().size(); ++i) {
      uint8_t* stub = base_ + stubs_ + i * kStubBytes;
      const uint8_t jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0xcc, 0xcc};
      std::memcpy(stub, jump, sizeof(jump));
      std::memcpy(stub + 8, &outside_symbols()[i].address, 8);
    }
    return {};
  }

  // Addresses of all symbols; 0 for those of sections that are not loaded.
  Status resolve() {
    const Elf64_Shdr& strings = sections_[sections_[symbol_table_].sh_link];
    addresses_.assign(symbols_.size(), 0);
    for (size_t i = 1; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i];
      const std::string_view name = text(strings, symbol.st_name);
      const uint16_t section = symbol.st_shndx;
      const int type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_TLS || type == STT_GNU_IFUNC || section == SHN_COMMON ||
          section == SHN_XINDEX)
        return fail("symbol '{}' is of a kind that kernels do not have", name);
      if (section == SHN_ABS) continue;  // file names
      if (section == SHN_UNDEF) {
        if (name.empty()) continue;
        const auto known = outside_symbols();
        auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Outside& o) { return o.name == name; });
        if (found == known.end()) return fail("it needs the external symbol '{}'", name);
        addresses_[i] = address(stubs_ + static_cast<size_t>(found - known.begin()) * kStubBytes);
        continue;
      }
      if (section >= sections_.size()) return fail("symbol '{}' is in no section", name);
      if (!is_loaded(section)) continue;
      if (symbol.st_value > sections_[section].sh_size)
        return fail("symbol '{}' lies outside its section", name);
      addresses_[i] = address(places_[section] + symbol.st_value);
      if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || name.empty()) continue;
      if (symbol.st_value == sections_[section].sh_size)
        return fail("symbol '{}' lies outside its section", name);
      object_->symbols_.emplace(name, reinterpret_cast<const void*>(addresses_[i]));
    }
    return {};
  }

  uint64_t address(uint64_t offset) const { return reinterpret_cast<uint64_t>(base_) + offset; }

  Status relocate() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type == SHT_REL) return fail("it has relocations without addends");
      if (s.sh_type != SHT_RELA) continue;
      if (s.sh_info >= sections_.size() || s.sh_entsize != sizeof(Elf64_Rela) ||
          s.sh_link != symbol_table_)
        return fail("its relocations are wrong");
      if (!is_loaded(s.sh_info)) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= s.sh_size; at += sizeof(Elf64_Rela))
        HEDDLE_RETURN_IF_ERROR(apply(s.sh_info, read<Elf64_Rela>(s.sh_offset + at)));
    }
    return {};
  }

  Status apply(size_t section, const Elf64_Rela& relocation) {
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
    if (type == R_X86_64_NONE) return {};
    const uint64_t index = ELF64_R_SYM(relocation.r_info);
    if (index >= symbols_.size() || addresses_[index] == 0)
      return fail("a relocation of {} has no symbol", section_name(section));
    const bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
    const uint64_t size = wide ? 8 : 4, room = sections_[section].sh_size;
    if (relocation.r_offset > room || size > room - relocation.r_offset)
      return fail("a relocation lies outside {}", section_name(section));
    uint8_t* place = base_ + places_[section] + relocation.r_offset;
    const uint64_t target = addresses_[index] + static_cast<uint64_t>(relocation.r_addend);
    const uint64_t distance = target - reinterpret_cast<uint64_t>(place);
    const auto as_signed =
        static_cast<int64_t>(type == R_X86_64_PC32 || type == R_X86_64_PLT32 ? distance : target);
    uint64_t value = target;
    switch (type) {
      case R_X86_64_64:
        break;
      case R_X86_64_PC64:
        value = distance;
        break;
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        value = distance;
        [[fallthrough]];
      case R_X86_64_32S:
        if (as_signed != static_cast<int32_t>(as_signed))
          return fail("a relocation of {} does not reach", section_name(section));
        break;
      case R_X86_64_32:
        if (target > UINT32_MAX)
          return fail("a relocation of {} does not reach", section_name(section));
        break;
      default:
        return fail("relocation type {} ({}) is not one of the emitter's", type,
                    relocation_name(type));
    }
    std::memcpy(place, &value, size);
    return {};
  }

  Status protect() {
    if (mprotect(base_, code_end_, PROT_READ | PROT_EXEC) != 0 ||
        (total_ > code_end_ && mprotect(base_ + code_end_, total_ - code_end_, PROT_READ) != 0))
      return machine_error("cannot make code executable: {}", strerror(errno));
    return {};
  }

  static constexpr uint64_t kNotLoaded = ~uint64_t{0};
  std::span<const uint8_t> bytes_;
  std::vector<Elf64_Shdr> sections_;
  Elf64_Shdr names_{};
  size_t symbol_table_ = 0;
  std::vector<Elf64_Sym> symbols_;
  std::vector<uint64_t> places_;     // by section: offset in the mapping
  std::vector<uint64_t> addresses_;  // by symbol
  uint64_t stubs_ = 0, code_end_ = 0, total_ = 0, end_ = 0;
  uint8_t* base_ = nullptr;
  std::unique_ptr<Object> object_;
};

Result<std::unique_ptr<Object>> Object::load(std::span<const uint8_t> bytes) {
  std::unique_ptr<Object> first;
  do {
    ObjectBuilder builder(bytes);
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Object> object, builder.build());
    bytes = bytes.subspan(std::min(align_up(builder.end(), kObjectAlignment), bytes.size()));
    if (first)
      first->others_.push_back(std::move(object));
    else
      first = std::move(object);
  } while (!bytes.empty());
  return first;
}

Object::~Object() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

const void* Object::find(std::string_view symbol) const {
  if (auto found = symbols_.find(std::string(symbol)); found != symbols_.end())
    return found->second;
  for (const std::unique_ptr<Object>& other : others_)
    if (const void* address = other->find(symbol)) return address;
  return nullptr;
}

int64_t Object::mapped_bytes() const {
  auto sum = static_cast<int64_t>(bytes_);
  for (const std::unique_ptr<Object>& other : others_) sum += other->mapped_bytes();
  return sum;
}

}  // namespace heddle::runtime
