// leaves: after a line on standard input, many goroutines call small functions that check no
// stack, so often as the first argument says; some of the calls panic, for a nil pointer. Then
// it prints a sum and how many calls panicked, and waits for the end of its input.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type node struct {
	next  *node
	value uint64
	bytes []byte
}

//go:noinline
func (n *node) second() uint64 { return n.next.value }

//go:noinline
func (n *node) length() int { return len(n.bytes) }

//go:noinline
func (n *node) add(v uint64) { n.value += v*3 + 1 }

//go:noinline
func mix(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

//go:noinline
func least(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return b
}

//go:noinline
//go:nosplit
func above(x uint64) uint64 { return below(x) + 1 }

//go:noinline
//go:nosplit
func below(x uint64) uint64 {
	var room [16]uint64
	room[x%16] = x
	return room[(x>>1)%16] + x
}

var panics atomic.Uint64

// tries calls a function that panics for a nil pointer.
func tries(n *node) (v uint64) {
	defer func() {
		if recover() != nil {
			panics.Add(1)
		}
	}()
	return n.second()
}

func work(rounds int, x uint64) uint64 {
	n := &node{next: &node{value: x}, bytes: make([]byte, 5)}
	for i := range rounds {
		x = mix(x) ^ n.second()
		n.next.add(x)
		x += least(x, uint64(n.length())) + above(x)
		if i%100 == 0 {
			x += tries(nil)
		}
	}
	return x
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	fmt.Println("ready", 0)
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	var all sync.WaitGroup
	sums := make([]uint64, 8)
	for i := range sums {
		all.Go(func() { sums[i] = work(rounds, uint64(i)) })
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				runtime.GC() // it stops all of them, and looks at their stacks
			}
		}
	}()
	all.Wait()
	close(done)
	var sum uint64
	for _, s := range sums {
		sum = mix(sum ^ s)
	}
	fmt.Printf("sum %x panics %d\n", sum, panics.Load())
	io.Copy(io.Discard, in)
}
