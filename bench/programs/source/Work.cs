using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;

// One portion of work for each line of input, answered by what came of it.
static class Work
{
	static int Fail(int n)
	{
		if (n == 0)
			throw new InvalidOperationException("deep");
		return 1 + Fail(n - 1);
	}

	static string Portion()
	{
		uint seed = 42;
		Func<uint, uint> next = n => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 65536 % n; };
		var words = new List<string>();
		for (int i = 0; i < 3000; i++) {
			var w = new StringBuilder();
			for (uint k = 2 + next(7); k > 0; k--)
				w.Append((char)('a' + next(8)));
			words.Add(w.ToString());
		}
		var count = words.GroupBy(w => w).OrderByDescending(g => g.Count()).ThenBy(g => g.Key, StringComparer.Ordinal).ToList();
		var text = string.Join(" ", words);
		int found = Regex.Matches(text, "(?:a|b)+[c-e]*(?=f)").Count, failed = 0;
		for (int i = 0; i < 100; i++)
			try {
				Fail(i % 30);
			} catch (InvalidOperationException) {
				failed++;
			}
		var sums = new long[4];
		var threads = Enumerable.Range(0, 4).Select(k => new Thread(() => sums[k] = words.Skip(k).Sum(w => (long)w.Length * (k + 1)))).ToList();
		threads.ForEach(t => t.Start());
		threads.ForEach(t => t.Join());
		for (int i = 0; i < 200; i++)
			words[i] = new string('x', 1000 + i);
		return count[0].Key + " " + count.Count + " " + found + " " + failed + " " + sums.Sum() + " " + Math.Sin(found).ToString("F6");
	}

	static void Main()
	{
		while (Console.ReadLine() != null) {
			Console.WriteLine(Portion() + "\n~end");
			Console.Out.Flush();
		}
	}
}
