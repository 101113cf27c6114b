// hogs: after a line on standard input, many goroutines compute without a pause, so that
// the scheduler takes the processors away from them, wherever they are; then it prints a
// sum, and waits for the end of its input. The first argument is how many rounds each
// makes. The second, if there is one, is an address that a goroutine has on its stack.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
)

//go:noinline
func leaf(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

// Most of what these two do is to begin and to end.
//
//go:noinline
func middle(x uint64) uint64 { return leaf(x) ^ 5 }

//go:noinline
func outer(x uint64) uint64 { return middle(x) + 1 }

// holds has a number on its stack, and waits for ever.
func holds(number uint64, ready chan<- bool) {
	room := [4]uint64{1: number}
	ready <- true
	ready <- true // no goroutine takes this one
	fmt.Println(room[number%4])
}

func main() {
	rounds := 1000
	if len(os.Args) > 2 {
		number, err := strconv.ParseUint(os.Args[2], 0, 64)
		if err != nil {
			panic(err)
		}
		ready := make(chan bool)
		go holds(number, ready)
		<-ready
	}
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	fmt.Println("ready", 0)
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	var all sync.WaitGroup
	sums := make([]uint64, 64)
	for i := range sums {
		all.Go(func() {
			x := uint64(i)
			for range rounds {
				x = outer(x)
			}
			sums[i] = x
		})
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC() // it stops all of them, and looks at their stacks
			}
		}
	}()
	all.Wait()
	close(done)
	var sum uint64
	for _, s := range sums {
		sum = leaf(sum ^ s)
	}
	fmt.Printf("sum %x\n", sum)
	io.Copy(io.Discard, in)
}
