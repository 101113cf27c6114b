// Command branching has branches and loops of Go. It prints a number, and does the same in each run.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

var sum int

func init() { runtime.LockOSThread() } // its code runs in the first thread

//go:noinline
func work(x int) int { sum += x; return sum & 7 }

//go:noinline
func sign(x int) int {
	if x < 0 {
		return -1
	} else if x == 0 {
		work(0)
		return 0
	}
	return 1
}

type kind int

//go:noinline
func chosen(k kind, text string) (r int) {
	switch k {
	case 0, 1:
		r = work(1)
	case 2:
		r = work(2)
		fallthrough
	case 3:
		r += work(3)
		if r > 5 {
			break
		}
		r++
	case 7:
	default:
		r = work(4)
	}
	switch {
	case r > 6:
		r = work(5)
	case r < 2 && k > 1:
		r = work(6)
	}
	switch text {
	case "one":
		r += work(1)
	case "two", "three":
		r += work(2)
	}
	return r
}

//go:noinline
func shape(v any) string {
	switch v := v.(type) {
	case int:
		if v > 3 {
			return "large"
		}
		return "int"
	case string:
		return v
	case error:
		return v.Error()
	}
	return "?"
}

//go:noinline
func words(text string) int {
	counts := map[string]int{}
	for _, w := range strings.Fields(text) {
		if w == "" {
			continue
		}
		counts[w]++
	}
	most := 0
	for _, n := range counts {
		if n > most {
			most = n
		}
	}
	for i, c := range text {
		if c == ' ' && i > 3 {
			sum++
		} else if c == 'x' {
			return i
		}
	}
	return most
}

//go:noinline
func nested(a, b int) int {
	if a > 2 && (b&1 == 1 || a == 5) {
		for i := 0; i < b; i++ {
			if i == 3 {
				break
			}
			work(i)
		}
	} else {
		if a < b {
			work(6)
		} else {
			work(7)
		}
		for b > 0 && work(b) < 5 {
			b -= 2
		}
	}
	return b
}

//go:noinline
func loops(n int) (at int) {
	for i := range n {
		at += i
	}
	for {
		at--
		if at < 0 {
			break
		}
	}
outer:
	for i := 0; i < n; i++ {
		for k := i; k < n; k++ {
			if k == 4 {
				continue outer
			}
			if i == 5 {
				break outer
			}
			sum += k * i
		}
		sum++
	}
	list := make([]int, n)
	for i := range list {
		list[i] = i * i
	}
	for _, x := range list {
		if x%2 == 0 {
			sum += x
		}
	}
	for left := n; left > 0; left -= 2 {
		work(left)
	}
	return at
}

//go:noinline
func tests(n int) {
	for {
		if n%7 == 3 {
			break
		}
		n++
		sum += n
	}
	for n > 0 &&
		n%5 != 3 {
		n++
		sum += n
	}
	if n > 20 {
		sum++
	}
	for n%6 != 2 || sum == n {
		n++
		if n > 60 {
			return
		}
	}
}

//go:noinline
func tried(n int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("recovered")
		}
	}()
	if n%4 == 3 {
		panic("three")
	}
	if err := check(n); err != nil {
		return err
	}
	return nil
}

//go:noinline
func check(n int) error {
	if n > 5 {
		return fmt.Errorf("%d is large", n)
	}
	return nil
}

//go:noinline
func received(n int) int {
	c := make(chan int, 4)
	got := 0
	for i := range n {
		select {
		case c <- i:
			got++
		default:
			got += <-c
		}
	}
	return got
}

//go:noinline
func closures(n int) int {
	each := func(k int) int {
		for k > 1 {
			if k%2 == 1 {
				sum += 3
			}
			k /= 2
		}
		return k
	}
	if n > 2 {
		n += each(n)
	}
	return n
}

func clamp(x, low, high int) int {
	if x < low {
		return low
	} else if x > high {
		return high
	}
	return x
}

func main() {
	for i := -2; i < 9; i++ {
		sum += sign(i) + chosen(kind(i), []string{"one", "two", "four"}[(i+2)%3])
		nested(i, 7)
		tests(i + 3)
		if err := tried(i + 2); err != nil {
			sum += len(err.Error())
		}
		sum += clamp(i, 0, 5) + clamp(sum, 3, 30) + closures(i)
	}
	for _, v := range []any{1, 7, "text", errors.New("e"), nil} {
		sum += len(shape(v))
	}
	loops(3)
	loops(7)
	sum += words("a bc bc d") + words("ax") + received(9)
	if len(os.Args) > 5 {
		sum = 0
	}
	fmt.Println(sum)
}
