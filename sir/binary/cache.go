package binary

import (
	"container/list"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// DefaultCacheBytes is a limit that suits a gateway: the programs and libraries
// of some hundred processes.
const DefaultCacheBytes = 256 << 20

// maxImages bounds the files a cache keeps open.
const maxImages = 256

// Cache keeps images by the identity of their files, so that the second request
// about a program is quick and a replaced file is seen. When the images take
// more memory than its limit, those not used for the longest time go.
type Cache struct {
	debug  DebugFiles
	limit  int64
	budget budget // of all images, those too that are not in the cache any more

	mu     sync.Mutex
	used   int64
	images map[fileKey]*list.Element // of *cached
	recent *list.List                // most recently used first
}

// fileKey is the identity of a file. Path and name are parts of it since ids are.
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
	bytes int64 // counted in Cache.used, 0 before the image was read
}

// NewCache makes a cache of at most limit bytes that looks for separate debug
// information in debug, nil for nowhere.
func NewCache(limit int64, debug DebugFiles) *Cache {
	return &Cache{debug: debug, limit: limit, images: map[fileKey]*list.Element{}, recent: list.New()}
}

// Open returns the image of the file that open gives for path. Several callers
// may ask for one file at a time; it is read once.
func (c *Cache) Open(path string, open Opener) (*Image, error) { return c.OpenAs(path, "", open) }

// OpenAs is Open for a program that was started under another name than that of its file:
// the ids of its units begin with that name. "" is the file's.
func (c *Cache) OpenAs(path, name string, open Opener) (*Image, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	key, ok := identity(path, f)
	if !ok { // memory, such as the vdso: small, and without an identity
		return newImage(path, name, f, c.debug, &c.budget)
	}
	key.name = name
	entry := c.entry(key)
	taken := false
	entry.once.Do(func() {
		taken = true
		entry.image, entry.err = newImage(path, name, f, c.debug, &c.budget)
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

// stamp is the identity of a file but for its path; nothing of what is only in memory.
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

// account adds what was read to the books and lets go of the oldest images. One
// that failed is forgotten: the next request tries again.
func (c *Cache) account(entry *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, kept := c.images[entry.key]
	if !kept || e.Value != entry { // it had to go while it was read
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

// maxLoaded is how much debug information may be in memory at a time, of all files together.
const maxLoaded = 1 << 30

// budget counts the debug information in memory. nil is a budget without a limit.
type budget struct{ used atomic.Int64 }

// take reports whether there is room for some bytes more, which are given back when their
// table is garbage. A file that finds no room has no lines.
func (b *budget) take(table *lineTable, bytes int64) bool {
	if b == nil {
		return true
	}
	if b.used.Add(bytes) > maxLoaded {
		b.used.Add(-bytes)
		return false
	}
	runtime.AddCleanup(table, func(bytes int64) { b.used.Add(-bytes) }, bytes)
	return true
}
