//go:build linux

package machine

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Each benchmark works for one turn several times; the best turn counts, because other
// load can only slow it down.
const (
	turn  = 10 * time.Millisecond
	turns = 5
)

// benches are small real loops, each run once, when a caller first asks.
type benches struct {
	integer  func() float64 // million steps of a mixing function per second
	floating func() float64 // million floating point operations per second, on matrices
	memory   func() float64 // megabytes copied per second
	disk     func() float64 // megabytes per second written to the temporary directory and flushed to the disk
	links    *linkBenches
}

func newBenches() benches {
	return benches{
		integer:  sync.OnceValue(benchInteger),
		floating: sync.OnceValue(benchFloating),
		memory:   sync.OnceValue(benchMemory),
		disk:     sync.OnceValue(benchDisk),
		links:    &linkBenches{known: make(map[string]float64)},
	}
}

// best repeats a piece of work of the given amount, and returns the best amount per
// second, in millions.
func best(amount int, work func()) float64 {
	var most float64
	for range turns {
		start, done := time.Now(), 0
		for time.Since(start) < turn {
			work()
			done += amount
		}
		most = max(most, float64(done)/time.Since(start).Seconds()/1e6)
	}
	return most
}

func benchInteger() float64 {
	const steps = 10_000
	var table [256]uint64
	x := uint64(1)
	return best(steps, func() {
		for range steps {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			slot := &table[x&255]
			if *slot > x {
				*slot -= x * 3
			} else {
				*slot += x
			}
		}
	})
}

func benchFloating() float64 {
	const n = 32
	var a, b, c [n][n]float64
	for i := range n {
		for j := range n {
			a[i][j], b[i][j] = float64(i+j)/n, float64(i-j)/n
		}
	}
	return best(2*n*n*n, func() {
		for i := range n {
			for j := range n {
				sum := c[i][j] / 2
				for k := range n {
					sum += a[i][k] * b[k][j]
				}
				c[i][j] = sum
			}
		}
	})
}

func benchMemory() float64 {
	const size = 64 << 20 // larger than most caches
	// A mapping goes back to the system at once.
	area, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
	if err != nil {
		return -1
	}
	defer unix.Munmap(area)
	return best(size/2, func() { copy(area[:size/2], area[size/2:]) })
}

func benchDisk() float64 {
	file, err := os.CreateTemp("", "mirador-bench-")
	if err != nil {
		return -1
	}
	defer file.Close()
	os.Remove(file.Name())
	const size = 4 << 20
	block := make([]byte, size)
	var failed error
	speed := best(size, func() {
		if _, err := file.WriteAt(block, 0); err != nil {
			failed = err
		}
		if err := file.Sync(); err != nil {
			failed = err
		}
	})
	if failed != nil {
		return -1
	}
	return speed
}

// linkBenches caches the measured speed by address.
type linkBenches struct {
	mu    sync.Mutex
	known map[string]float64
}

// network returns the speed of a TCP connection of the node with itself, in megabytes per
// second.
func (b *benches) network(addr string) float64 {
	b.links.mu.Lock()
	defer b.links.mu.Unlock()
	speed, known := b.links.known[addr]
	if !known {
		speed = benchNetwork(addr)
		b.links.known[addr] = speed
	}
	return speed
}

func benchNetwork(addr string) float64 {
	listener, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		return -1
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		defer close(accepted)
		if c, err := listener.Accept(); err == nil {
			accepted <- c
		}
	}()
	near, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second)
	if err != nil {
		listener.Close()
		<-accepted
		return -1
	}
	defer near.Close()
	far, ok := <-accepted
	if !ok {
		return -1
	}
	var drained sync.WaitGroup
	drained.Go(func() {
		// Copy through memory: splice would not touch the data.
		io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{far})
		far.Close()
	})
	const size = 256 << 10
	block := make([]byte, size)
	speed := best(size, func() { near.Write(block) })
	near.Close()
	drained.Wait()
	return speed
}
