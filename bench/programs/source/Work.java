import java.io.*;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.*;
import java.util.stream.*;
import java.util.zip.*;

// One portion of work for each line of input, answered by what came of it.
public class Work {
	static int fail(int n) {
		if (n == 0)
			throw new IllegalStateException("deep");
		return 1 + fail(n - 1);
	}

	static String portion() throws Exception {
		Random r = new Random(42);
		List<String> words = new ArrayList<>();
		for (int i = 0; i < 8000; i++) {
			StringBuilder w = new StringBuilder();
			for (int k = 2 + r.nextInt(7); k > 0; k--)
				w.append((char) ('a' + r.nextInt(8)));
			words.add(w.toString());
		}
		Map<String, Long> count = words.stream().collect(Collectors.groupingBy(w -> w, TreeMap::new, Collectors.counting()));
		String text = String.join(" ", words);
		Matcher m = Pattern.compile("(?:a|b)+[c-e]*(?=f)").matcher(text);
		int found = 0, failed = 0;
		while (m.find())
			found += m.end() - m.start();
		for (int i = 0; i < 300; i++)
			try {
				fail(i % 40);
			} catch (IllegalStateException e) {
				failed += e.getStackTrace().length > i % 40 ? 1 : 0;
			}
		ExecutorService pool = Executors.newFixedThreadPool(4);
		List<Future<Long>> sums = new ArrayList<>();
		for (int i = 0; i < 16; i++) {
			final int k = i;
			sums.add(pool.submit(() -> {
				CRC32 crc = new CRC32();
				byte[] b = text.getBytes(StandardCharsets.UTF_8);
				crc.update(b, k, b.length - k);
				return crc.getValue();
			}));
		}
		long sum = 0;
		for (Future<Long> f : sums)
			sum = sum * 31 + f.get();
		pool.shutdown();
		byte[][] garbage = new byte[64][];
		for (int i = 0; i < 4000; i++)
			garbage[i % 64] = new byte[4096 + i];
		MessageDigest d = MessageDigest.getInstance("SHA-256");
		d.update(count.toString().getBytes(StandardCharsets.UTF_8));
		d.update(String.format("%d %d %d %.6f %d", found, failed, sum, Math.sin(found), garbage.length).getBytes(StandardCharsets.UTF_8));
		return new java.math.BigInteger(1, d.digest()).toString(16);
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		while (in.readLine() != null) {
			System.out.println(portion() + "\n~end");
			System.out.flush();
		}
	}
}
