// Which build of a shared library this process has loaded.
#pragma once

#include <string>

namespace process {

// The build id of the library that holds the address, as the linker wrote it; without one, the size
// and the time of change of the file at `path`. Two builds that generate different code differ in
// it.
std::string LibraryIdentity(const void* address, const std::string& path);
// The same with the file that the address was loaded from.
std::string LibraryIdentity(const void* address);

}  // namespace process
