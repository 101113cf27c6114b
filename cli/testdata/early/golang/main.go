// A Go program that works while its variables are initialised, in init and in main. In the end
// it reports the calls of its function.
package main

import "fmt"

var calls int

//go:noinline
func work() { calls++ }

func times(n int) int {
	for range n {
		work()
	}
	return n
}

var early = times(300)

func init() { times(40) }

func main() {
	times(10)
	fmt.Println(calls, 0)
}
