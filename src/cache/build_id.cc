#include "cache/build_id.h"

#include <fmt/format.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/hash.h"

namespace heddle::cache {
namespace {

constexpr uint64_t kMaxNoteBytes = 1 << 20;

struct Search {
  uintptr_t address;
  bool found = false;
  std::string id, path;
};

std::string hex(const uint8_t* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// The GNU build-id note in a loaded segment; empty if there is none.
std::string note_id(const uint8_t* notes, size_t bytes) {
  size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= bytes) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const size_t name = at + sizeof(note), text = name + (note.n_namesz + 3) / 4 * 4;
    if (text + note.n_descsz > bytes) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + name, "GNU", 4) == 0)
      return hex(notes + text, note.n_descsz);
    at = text + (note.n_descsz + 3) / 4 * 4;
  }
  return {};
}

int visit(dl_phdr_info* info, size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && search.address >= begin &&
        search.address < begin + header.p_memsz)
      holds = true;
  }
  if (!holds) return 0;
  search.found = true;
  search.path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  for (int i = 0; i < info->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_NOTE)
      search.id = note_id(reinterpret_cast<const uint8_t*>(info->dlpi_addr + header.p_vaddr),
                          header.p_memsz);
  }
  return 1;
}

}  // namespace

std::string build_id(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address)};
  dl_iterate_phdr(&visit, &search);
  if (!search.found || !search.id.empty()) return search.id;
  return file_build_id(search.path.empty() ? "/proc/self/exe" : search.path);
}

std::string file_build_id(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  ElfW(Ehdr) header;
  if (file.read(reinterpret_cast<char*>(&header), sizeof(header)) &&
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
      header.e_phentsize == sizeof(ElfW(Phdr))) {
    for (int i = 0; i < header.e_phnum; ++i) {
      ElfW(Phdr) segment;
      file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof(segment)));
      if (!file.read(reinterpret_cast<char*>(&segment), sizeof(segment))) break;
      if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
      std::vector<uint8_t> notes(segment.p_filesz);
      file.seekg(static_cast<std::streamoff>(segment.p_offset));
      if (!file.read(reinterpret_cast<char*>(notes.data()),
                     static_cast<std::streamsize>(notes.size())))
        break;
      if (std::string id = note_id(notes.data(), notes.size()); !id.empty()) return id;
    }
  }
  file.clear();
  file.seekg(0);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  return bytes.empty() ? "" : hash128(bytes).hex();
}

}  // namespace heddle::cache
