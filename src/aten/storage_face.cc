#include "aten/storage_face.h"

#include <mutex>
#include <unordered_map>

#include "aten/tensor.h"

namespace torch_xla {
namespace {

constexpr int kAddressBits = 30;

// Who has which face. Never destroyed: storages may live as long as the process.
struct Faces {
  std::mutex mutex;
  std::unordered_map<const c10::StorageImpl*, lazy::Storage*> owners;
};

Faces& AllFaces() {
  static auto* faces = new Faces;
  return *faces;
}

// Lives in its storage; who holds the c10::Storage alone sees an empty one afterwards.
class Face {
 public:
  explicit Face(lazy::Storage& owner)
      : storage(c10::Storage::use_byte_size_t(), owner.value().shape().byte_size(),
                // Never read: operations on xla tensors do not look at it.
                c10::DataPtr(reinterpret_cast<void*>(AddressOf(owner)),  // NOLINT
                             ToTorchDevice(owner.device())),
                /*allocator=*/nullptr, /*resizable=*/false) {
    storage.unsafeGetStorageImpl()->set_throw_on_mutable_data_ptr();
    std::lock_guard lock(AllFaces().mutex);
    AllFaces().owners.emplace(storage.unsafeGetStorageImpl(), &owner);
  }
  ~Face() {
    {
      std::lock_guard lock(AllFaces().mutex);
      AllFaces().owners.erase(storage.unsafeGetStorageImpl());
    }
    storage.set_nbytes(0);
  }
  Face(const Face&) = delete;
  Face& operator=(const Face&) = delete;

  c10::Storage storage;
};

}  // namespace

uint64_t AddressOf(const lazy::Storage& storage) {
  return static_cast<uint64_t>(storage.id()) << kAddressBits;
}

const c10::Storage& FaceOf(lazy::Storage& storage) {
  auto make = [](lazy::Storage& owner) -> std::shared_ptr<void> {
    return std::make_shared<Face>(owner);
  };
  return static_cast<Face*>(storage.Attachment(make))->storage;
}

lazy::Reference<lazy::Storage> StorageOf(const c10::StorageImpl* face) {
  std::lock_guard lock(AllFaces().mutex);
  auto found = AllFaces().owners.find(face);
  // A storage whose last reference is gone waits for the lock, to take its face away.
  if (found == AllFaces().owners.end() || !found->second->TryRetain()) return nullptr;
  return lazy::Reference<lazy::Storage>::Adopt(found->second);
}

}  // namespace torch_xla
