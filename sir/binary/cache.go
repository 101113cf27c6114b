package binary

import (
	"container/list"
	"io"
	"os"
	"sync"
	"syscall"
)

// DefaultCacheBytes is a limit for a gateway: enough for the programs and libraries of about a
// hundred processes.
const DefaultCacheBytes = 256 << 20

// maxImages limits the number of files that a cache keeps open.
const maxImages = 256

// Cache holds images by the identity of their files, so that a second request about a program
// is fast, and a replaced file is noticed. When the images exceed the memory limit, the cache
// drops the least recently used ones.
type Cache struct {
	debug DebugFiles
	limit int64

	mu     sync.Mutex
	used   int64
	images map[fileKey]*list.Element // of *cached
	recent *list.List                // most recently used first
}

// fileKey is the identity of a file. It includes path and name, because the ids of units do.
type fileKey struct {
	path, name string
	dev, ino   uint64
	size       int64
	mtim, ctim syscall.Timespec
}

type cached struct {
	key   fileKey
	once  sync.Once
	image *Image
	err   error
	bytes int64 // counted in Cache.used; 0 until the image is read
}

// NewCache returns a cache of at most limit bytes. It searches debug for separate debug
// information; nil disables the search.
func NewCache(limit int64, debug DebugFiles) *Cache {
	return &Cache{debug: debug, limit: limit, images: map[fileKey]*list.Element{}, recent: list.New()}
}

// Open returns the image of the file that open returns for path. If several goroutines open a
// file at the same time, it is read once.
func (c *Cache) Open(path string, open Opener) (*Image, error) { return c.OpenAs(path, "", open) }

// OpenAs is Open for a program that was started under another name than its file has: the ids
// of its units begin with name. "" means the name of the file.
func (c *Cache) OpenAs(path, name string, open Opener) (*Image, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	key, ok := identity(path, f)
	if !ok { // in memory, such as the vdso: small, and without an identity
		return newImage(path, name, f, c.debug)
	}
	key.name = name
	entry := c.entry(key)
	taken := false
	entry.once.Do(func() {
		taken = true
		entry.image, entry.err = newImage(path, name, f, c.debug)
		c.account(entry)
	})
	if closer, ok := f.(io.Closer); ok && (!taken || entry.err != nil) {
		closer.Close()
	}
	return entry.image, entry.err
}

func identity(path string, f File) (fileKey, bool) {
	info, err := f.Stat()
	if err != nil {
		return fileKey{}, false
	}
	key := stamp(info)
	key.path = path
	return key, key.ino != 0
}

// stamp returns the identity of a file without its path. It is zero for a file that exists
// only in memory.
func stamp(info os.FileInfo) fileKey {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileKey{}
	}
	return fileKey{dev: st.Dev, ino: st.Ino, size: st.Size, mtim: st.Mtim, ctim: st.Ctim}
}

func (c *Cache) entry(key fileKey) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.images[key]; ok {
		c.recent.MoveToFront(e)
		return e.Value.(*cached)
	}
	entry := &cached{key: key}
	c.images[key] = c.recent.PushFront(entry)
	return entry
}

// account adds the memory of a new image and drops the oldest images. It drops an image that
// could not be read, so that the next request tries again.
func (c *Cache) account(entry *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, kept := c.images[entry.key]
	if !kept || e.Value != entry { // dropped while it was read
		return
	}
	if entry.err != nil {
		c.drop(e)
		return
	}
	entry.bytes = entry.image.memory
	c.used += entry.bytes
	for (c.used > c.limit || c.recent.Len() > maxImages) && c.recent.Len() > 1 {
		c.drop(c.recent.Back())
	}
}

func (c *Cache) drop(e *list.Element) {
	entry := c.recent.Remove(e).(*cached)
	delete(c.images, entry.key)
	c.used -= entry.bytes
}
