# One portion of work for each line of input, answered by what came of it.
$stdout.sync = true

def deep(n)
  raise ArgumentError, 'deep' if n.zero?
  1 + deep(n - 1)
end

def portion
  seed = 42
  nxt = lambda { |n| seed = (seed * 1103515245 + 12345) % 2147483648; seed / 65536 % n }
  words = Array.new(2500) { (0...2 + nxt.call(7)).map { (97 + nxt.call(8)).chr }.join }
  count = words.tally
  text = words.join(' ')
  failed = (0..80).count { |i| begin; deep(i % 25); false; rescue ArgumentError; true; end }
  sorted = count.sort_by { |w, n| [-n, w] }
  sum = sorted.map { |w, n| format('%s=%05.2f', w, n / 3.0) }.join(',').sum
  threads = (0...3).map { |t| Thread.new { words.each_slice(t + 2).sum { |s| s.first.hash_of } } }
  GC.start
  "#{sum} #{failed} #{text.scan(/((?:a|b)+[c-e]*)(?=f)/).size} #{threads.sum(&:value)}"
end

class String
  def hash_of
    each_byte.reduce(7) { |h, b| (h * 31 + b) % 1_000_003 }
  end
end

puts portion, '~end' while gets
