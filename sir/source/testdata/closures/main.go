package main

import (
	"fmt"
	"os"
)

var hook = func() int { return len(fmt.Sprint(1)) }

type T struct{ n int }

func (t *T) Add(k int) {
	for i := range k {
		t.n += i
		func() { fmt.Println(t.n) }()
	}
}
func (t T) Get() int { return t.n }
func init()          { fmt.Println("a") }
func init()          { fmt.Println("b") }

func main() {
	t := &T{}
	f := func() {
		g := func(k int) { fmt.Println(k) }
		for range limit(2) {
			g(1)
		}
		go func() { fmt.Println("x") }()
	}
	f()
	t.Add(3)
	go func() {}()
	func(i int) { fmt.Println(i) }(3)
	total(t.n)
	fmt.Println(t.Get(), hook())
}

// total has loops in branches, and statements that are no loops.
func total(n int) (sum int) {
	if n > 3 {
		for i := 0; i < limit(n); i++ {
			if i == 7 {
				continue
			}
			for k := limit(i); k > 0; k-- {
				sum += k
			}
		}
	} else {
		for sum < n {
			sum += limit(1)
		}
	}
	for {
		sum++
		break
	}
	switch {
	case sum > 7:
		for {
			if sum--; sum < 7 {
				return sum
			}
		}
	}
	for i := range limit(n) {
		sum += i
	}
	return sum
}

func limit(n int) int { return n + len(os.Args) }
