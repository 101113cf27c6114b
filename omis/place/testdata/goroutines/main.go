// Goroutines calls functions that block, whose stacks move, that recur, and that are left
// without a return. After a line "sleep N", "grow N", "deep N" or "leave N", it calls sleeps,
// grows, dives or leaves N times; it answers "CALLS RETURNS INSIDE OUTSIDE": how often the
// function began and returned, and for how long all calls took that returned, in
// nanoseconds, as seen from within and from the caller.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

var (
	calls, returns  atomic.Int64
	inside, outside atomic.Int64
)

//go:noinline
func sleeps(k int) {
	from := time.Now()
	var b [300]byte
	for i := range b {
		b[i] = byte(k + i)
	}
	time.Sleep(time.Duration(1+k%5)*time.Millisecond + time.Duration(b[k%300]))
	inside.Add(int64(time.Since(from)))
}

//go:noinline
func room(n int) int {
	var b [512]byte
	for i := range b {
		b[i] = byte(n + i)
	}
	if n == 0 {
		return int(b[3])
	}
	return room(n-1) + int(b[n%512])
}

//go:noinline
func grows(k int) {
	from := time.Now()
	room(20 + k%40)
	time.Sleep(time.Millisecond)
	inside.Add(int64(time.Since(from)))
}

//go:noinline
func dives(n int) int {
	from := time.Now()
	calls.Add(1)
	var b [700]byte
	for i := range b {
		b[i] = byte(n + i)
	}
	sum := int(b[n%700])
	if n > 0 {
		sum += dives(n - 1)
	} else {
		runtime.Gosched()
	}
	returns.Add(1)
	inside.Add(int64(time.Since(from)))
	return sum
}

//go:noinline
func leaves(k int) int {
	calls.Add(1)
	var b [300]byte
	for i := range b {
		b[i] = byte(k + i)
	}
	switch k % 4 {
	case 1:
		runtime.Goexit()
	case 2:
		panic(k)
	}
	returns.Add(1)
	return int(b[k%300])
}

//go:noinline
func recovers(k int) (x int) {
	defer func() { recover() }()
	return leaves(k)
}

func timed(call func()) {
	from := time.Now()
	call()
	outside.Add(int64(time.Since(from)))
}

// each has n goroutines call something, 50 at a time.
func each(n int, call func(k int)) {
	var all sync.WaitGroup
	places := make(chan bool, 50)
	for k := range n {
		places <- true
		all.Go(func() {
			defer func() { <-places }()
			call(k)
		})
	}
	all.Wait()
}

func do(what string, n int) {
	switch what {
	case "sleep": // 50 goroutines, each of which calls it many times
		var all sync.WaitGroup
		for g := range 50 {
			all.Go(func() {
				for k := g; k < n; k += 50 {
					timed(func() { sleeps(k) })
				}
			})
		}
		all.Wait()
		calls.Add(int64(n))
		returns.Add(int64(n))
	case "grow":
		each(n, func(k int) { timed(func() { grows(k) }) })
		calls.Add(int64(n))
		returns.Add(int64(n))
	case "deep":
		each(n, func(k int) { timed(func() { dives(20) }) })
	case "leave":
		each(n, func(k int) { recovers(k); recovers(k / 4) })
	}
}

func main() {
	runtime.GOMAXPROCS(4)
	fmt.Println("ready 0x0")
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		var what string
		var n int
		fmt.Sscan(s.Text(), &what, &n)
		for _, v := range []*atomic.Int64{&calls, &returns, &inside, &outside} {
			v.Store(0)
		}
		do(what, n)
		fmt.Println(calls.Load(), returns.Load(), inside.Load(), outside.Load())
	}
}
