// Waiting: goroutines wait for different reasons, and one computes. After each line on
// standard input the program prints what the runtime itself says of its goroutines
// (runtime.Stack), and a line "end".
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var counted atomic.Uint64

//go:noinline
func computes() {
	for {
		counted.Add(1)
	}
}

//go:noinline
func receives(c chan int) { <-c }

//go:noinline
func sends(c chan int) { c <- 1 }

//go:noinline
func selects(a, b chan int) {
	select {
	case <-a:
	case <-b:
	}
}

//go:noinline
func sleeps() { time.Sleep(time.Hour) }

//go:noinline
func locks(m *sync.Mutex) { m.Lock() }

//go:noinline
func reads(fd int) {
	var b [1]byte
	_, _ = syscall.Read(fd, b[:])
}

//go:noinline
func nests(n int, c chan int) int {
	if n == 0 {
		<-c
		return 0
	}
	return nests(n-1, c) + 1
}

func main() {
	runtime.GOMAXPROCS(4)
	c := make(chan int)
	var held sync.Mutex
	held.Lock()
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		panic(err)
	}
	for range 3 {
		go receives(c)
	}
	go sends(make(chan int))
	go selects(make(chan int), make(chan int))
	go sleeps()
	go locks(&held)
	go reads(pipe[0])
	go nests(30, make(chan int))
	go computes()
	fmt.Println("ready 0")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		b := make([]byte, 1<<20)
		os.Stdout.Write(b[:runtime.Stack(b, true)])
		fmt.Println("\nend")
	}
}
